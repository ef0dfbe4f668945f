/** The secret of an endpoint is rotated while messages are sent to it: no request is refused, and the old one ends. */
import { createHmac } from "node:crypto"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { type Received, receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, pause } from "../servers/until.ts"

const GRACE_SECONDS = 12
/** A worker may sign for a second with the endpoint as it was before; the rest is for a busy machine. */
const STALE_MS = 4_000

/** Written from the specification, and sharing nothing with the code that signs. */
const isSignedBy = (secret: string, { headers, body }: Received): boolean => {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64")
  const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`
  const expected = `v1,${createHmac("sha256", key).update(content).digest("base64")}`
  return String(headers["webhook-signature"]).split(" ").includes(expected)
}

interface Secret {
  readonly secret: string
  readonly previousUntil: string
}

describe("the rotation of a secret", () => {
  it.live(
    "under load refuses nothing to a receiver that changes over within the grace, after which the old secret verifies nothing",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        let known = ""
        /** What was signed before the receiver changed over may come later. */
        let changedOver: { readonly old: string; readonly atMs: number } | null = null
        const refused: Array<Received> = []
        const far = yield* receiver((request) => {
          if (isSignedBy(known, request)) return { status: 200 }
          const signedAtMs = Number(request.headers["webhook-timestamp"]) * 1_000
          const isLate = changedOver !== null && signedAtMs < changedOver.atMs && isSignedBy(changedOver.old, request)
          if (isLate) return { status: 200 }
          refused.push(request)
          return { status: 503 }
        })
        const call = api((yield* product(database, { POSTHASTE_ROLES: "api" })).url!, "acme")
        const worker = { POSTHASTE_ROLES: "worker", POSTHASTE_CIRCUIT_FAILURES: "1000000" }
        yield* product(database, worker)
        yield* product(database, worker)

        yield* Effect.promise(async () => {
          const made = (await call<{ id: string; secret: string }>("POST", "/webhook-endpoints", { url: far.url })).body
          const old = made.secret
          known = old
          let sent = 0
          const message = { channel: "webhook", to: made.id, payloadJson: { n: 1 } }
          const send = async () => {
            const messages = Array.from({ length: 20 }, () => message)
            const { status } = await call("POST", "/outbound/messages/batch", { messages })
            expect(status).toBeLessThan(300)
            sent += messages.length
          }
          let loading = true
          const load = (async () => {
            for (; loading; await pause(100)) await send()
          })()

          await pause(1_000)
          const { secret, previousUntil } = (
            await call<Secret>("POST", `/webhook-endpoints/${made.id}/secret/rotate`, { graceSeconds: GRACE_SECONDS })
          ).body
          const rotatedAtMs = Date.now()
          await pause(STALE_MS)
          known = secret
          changedOver = { old, atMs: rotatedAtMs + STALE_MS }
          const ends = Date.parse(previousUntil)
          expect(Date.now()).toBeLessThan(ends)
          await pause(ends - Date.now() + 1_500)
          loading = false
          await load
          await send()
          const deadline = Date.now() + PATIENCE_MS
          while (new Set(far.received.map(({ id }) => id)).size < sent && Date.now() < deadline) await pause(50)

          expect(new Set(far.received.map(({ id }) => id)).size).toBe(sent)
          expect(refused).toEqual([])
          const signedBy = (each: string) => far.received.filter((request) => isSignedBy(each, request))
          const secondsOf = ({ headers }: Received) => Number(headers["webhook-timestamp"])
          const both = signedBy(old).filter((request) => isSignedBy(secret, request))
          expect(both.length).toBeGreaterThan(0)
          const late = far.received.filter((request) => secondsOf(request) * 1_000 >= ends)
          expect(late.length).toBeGreaterThan(0)
          expect(late.filter((request) => isSignedBy(old, request))).toEqual([])
          expect(late.filter((request) => !isSignedBy(secret, request))).toEqual([])
        })
      }).pipe(Effect.scoped),
    600_000
  )
})
