/**
 * Law: whatever is changed about an endpoint while it is being sent to, each request is addressed and signed by one version
 * of it. Changes and rotations go through the port, sends through the real channel to a real server.
 */
import { createHmac } from "node:crypto"
import { it } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Redacted, Result } from "effect"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import { generateSecret } from "../../../../src/adapters/channels/webhook/signature.ts"
import * as WebhookChannel from "../../../../src/adapters/channels/webhook/WebhookChannel.ts"
import { senderOf } from "../../../../src/application/deliver/Senders.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { makeEndpoint, webhook } from "../../../contracts/destinations/samples.ts"
import { newOrg } from "../../../contracts/sample.ts"
import * as MemoryPorts from "../../../model/MemoryPorts.ts"
import { answer, type Received, receiver } from "../net/receiver.ts"
import { messageTo } from "./endpoint.ts"

const rules = { allowedNetworks: Result.getOrThrow(parseNetworks("127.0.0.0/8")), exemptions: [] }

const signedBy = (secret: Redacted.Redacted, { headers, body }: Received): boolean => {
  const key = Buffer.from(Redacted.value(secret).slice(6), "base64")
  const content = Buffer.concat([
    Buffer.from(`${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.`),
    body
  ])
  const mac = createHmac("sha256", key).update(content).digest("base64")
  return headers.get("webhook-signature")!.split(" ").includes(`v1,${mac}`)
}

interface Change {
  readonly rotate: boolean
  readonly graceMs: number
  readonly sends: number
}

/** What is changed next: where it is and what it sends along, or by which secret it signs; so many sends begin on either side. */
const changes: fc.Arbitrary<ReadonlyArray<Change>> = fc.array(
  fc.record({ rotate: fc.boolean(), graceMs: fc.constantFrom(0, 60_000), sends: fc.integer({ min: 0, max: 3 }) }),
  { minLength: 20, maxLength: 20 }
)

describe("an endpoint that is changed twenty times while it is being sent to", () => {
  it.live("sends each request by one version of it", () =>
    Effect.gen(function* () {
      const far = yield* receiver({ request: (socket) => answer(socket, 200) })
      const destinations = yield* Destinations
      const sender = yield* senderOf(WebhookChannel.channel(rules))
      const run = Effect.fnUntraced(function* (
        plan: ReadonlyArray<
          typeof changes extends fc.Arbitrary<infer A> ? (A extends ReadonlyArray<infer B> ? B : never) : never
        >
      ) {
        const orgId = newOrg()
        const first = generateSecret()
        const endpoint = yield* makeEndpoint(
          orgId,
          { url: `${far.url}/v1`, headers: { "x-version": "1" } },
          { secrets: { secret: first } }
        )
        const { id } = endpoint
        /** Version → its newest secret, and those that sign beside it. */
        const signers = new Map<number, ReadonlyArray<Redacted.Redacted>>([[1, [first]]])
        const before = far.requests.length
        const send = Effect.forkChild(sender.send(messageTo(endpoint, { orgId, destination: id })))
        const fibers: Array<Effect.Success<typeof send>> = []
        let place = 1
        const places = new Map([[1, 1]])
        for (const { rotate, graceMs, sends } of plan) {
          for (let n = 0; n < sends; n++) fibers.push(yield* send)
          const version = signers.size + 1
          const known = signers.get(version - 1)!
          if (rotate) {
            const secret = generateSecret()
            const previousUntil = DateTime.add(yield* DateTime.now, { milliseconds: graceMs })
            yield* destinations.rotateSecret(webhook, orgId, id, {
              name: "secret",
              secret,
              published: {},
              previousUntil
            })
            signers.set(version, graceMs === 0 ? [secret] : [secret, ...known].slice(0, 3))
          } else {
            place += 1
            const settings = { url: `${far.url}/v${place}`, headers: { "x-version": `${place}` } }
            yield* destinations.change(webhook, orgId, id, { settings })
            signers.set(version, known)
          }
          places.set(version, place)
          for (let n = 0; n < sends; n++) fibers.push(yield* send)
          yield* Effect.yieldNow
        }
        yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
        const secrets = [...new Set([...signers.values()].flat())]
        for (const request of far.requests.slice(before)) {
          const where = Number(request.headers.get("x-version"))
          expect(request.line).toContain(`/v${where} `)
          const by = secrets.filter((secret) => signedBy(secret, request))
          const whole = [...signers].filter(
            ([version, each]) =>
              places.get(version) === where && each.length === by.length && each.every((secret) => by.includes(secret))
          )
          expect(whole.length).toBeGreaterThan(0)
        }
        return fibers.length
      })
      let sent = 0
      for (const plan of fc.sample(changes, 25)) sent += yield* run(plan)
      expect(far.requests).toHaveLength(sent)
      expect(sent).toBeGreaterThan(500)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(MemoryPorts.layer)))
  )
})
