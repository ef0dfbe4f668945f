import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type Acceptance, acceptMessages, type MessageRequest } from "../../../src/application/accept/acceptMessage.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Fingerprint } from "../../../src/application/ports/Fingerprint.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { presets } from "../../../src/domain/delivery/retry.ts"
import { type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { makeAccount, makeEndpoint, makeTarget, webhook } from "../../contracts/destinations/samples.ts"
import type { StorePorts } from "../../contracts/sample.ts"
import { noon, noonPlus } from "../../domain/message/samples.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")

/** The text is its own fingerprint: what is compared can be read. */
const ports = Layer.mergeAll(
  MemoryPorts.layer,
  Layer.succeed(Fingerprint, { of: (text) => text, line: (text) => text })
)

const atNoon = <A, E>(effect: Effect.Effect<A, E, StorePorts | Fingerprint>) =>
  TestClock.setTime(DateTime.toEpochMillis(noon)).pipe(Effect.andThen(effect), Effect.provide(ports))

const endpoint = makeEndpoint(acme)

const target = makeTarget(acme, { idempotency: "none", retry: { strategy: "fixed", baseMs: 7 } })

const request = (to: string, change: Partial<MessageRequest> = {}): MessageRequest => ({
  channel: "webhook",
  to,
  eventType: null,
  templateCode: null,
  dossierId: null,
  orderingKey: null,
  correlationId: null,
  metadata: null,
  deliverAt: null,
  expiresAt: null,
  retry: null,
  body: "{}",
  idempotencyKey: null,
  ...change
})

const idOf = (acceptance: Acceptance | undefined): MessageId => {
  if (acceptance?.type !== "Accepted" && acceptance?.type !== "AlreadyAccepted") throw new Error("not accepted")
  return acceptance.message.id
}

describe("an accepted message", () => {
  it.effect("has its first fact, its body and its place in the queue", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* endpoint
        const [acceptance] = yield* acceptMessages(acme, [request(to, { body: "1.10", correlationId: "c" })])
        const id = idOf(acceptance)
        const { facts } = yield* (yield* EventStore).load(id)
        expect(facts).toHaveLength(1)
        expect(facts[0]!.fact).toMatchObject({ type: "MessageQueued", destination: to, acceptedAt: noon, dueAt: noon })
        expect(JSON.stringify(facts)).not.toContain("1.10")
        expect(yield* (yield* Bodies).load(id)).toBe("1.10")
        expect(yield* (yield* Queue).nextDueAt).toEqual(noon)
      })
    )
  )

  it.effect("is due when it asked to be, and never before it was accepted", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* endpoint
        const dueAt = (deliverAt: DateTime.Utc) =>
          Effect.map(acceptMessages(acme, [request(to, { deliverAt })]), ([acceptance]) =>
            acceptance?.type === "Accepted" ? acceptance.message.nextAttemptAt : null
          )
        expect(yield* dueAt(noonPlus(60_000))).toEqual(noonPlus(60_000))
        expect(yield* dueAt(noonPlus(-60_000))).toEqual(noon)
      })
    )
  )
})

describe("a request for an HTTP target", () => {
  it.effect("is accepted for the target's lane and with its retry policy", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* target
        const [acceptance] = yield* acceptMessages(acme, [request(to, { channel: "http" })])
        const { facts } = yield* (yield* EventStore).load(idOf(acceptance))
        expect(facts[0]!.fact).toMatchObject({
          channel: "http",
          to,
          destination: to,
          retry: { strategy: "fixed", baseMs: 7 }
        })
      })
    )
  )

  it.effect("is refused when its channel and its destination do not belong together", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: targetId } = yield* target
        const { id: endpointId } = yield* endpoint
        const other = OrgId.make("globex")
        const answers = [
          ...(yield* acceptMessages(acme, [request(targetId), request(endpointId, { channel: "http" })])),
          ...(yield* acceptMessages(other, [request(targetId, { channel: "http" })]))
        ]
        const refused = (reason: string) => ({ type: "Refused", faults: [{ field: "to", reason }] })
        expect(answers).toEqual([
          refused("is not the id of a webhook endpoint of this org"),
          refused("is not the id of an HTTP target of this org"),
          refused("is not the id of an HTTP target of this org")
        ])
      })
    )
  )
})

const account = (phoneNumberId: string) => makeAccount(acme, { phoneNumberId })

describe("a request for WhatsApp", () => {
  const whatsapp = (change: Partial<MessageRequest> = {}) =>
    request("+49 151 1234-5678", { channel: "whatsapp", body: '{"text":"Hello"}', ...change })
  const ask = (change: Partial<MessageRequest> = {}) =>
    Effect.map(acceptMessages(acme, [whatsapp(change)]), ([acceptance]) => acceptance!)

  it.effect("is accepted for the lane of the org's only account, to the digits, with WhatsApp's retry policy", () =>
    atNoon(
      Effect.gen(function* () {
        const { id } = yield* account("1001")
        const { facts } = yield* (yield* EventStore).load(idOf(yield* ask()))
        expect(facts[0]!.fact).toMatchObject({
          channel: "whatsapp",
          to: "4915112345678",
          destination: id,
          retry: presets.whatsapp
        })
      })
    )
  )

  it.effect("goes out from the account it names, by id or by number", () =>
    atNoon(
      Effect.gen(function* () {
        yield* account("1001")
        const { id, settings } = yield* account("1002")
        for (const from of [id, settings.phoneNumberId]) {
          const accepted = yield* ask({ body: JSON.stringify({ text: "Hello", from }) })
          expect(accepted).toMatchObject({ type: "Accepted", message: { destination: id } })
        }
      })
    )
  )

  it.effect("is refused when it is not clear from which account, or there is none", () =>
    atNoon(
      Effect.gen(function* () {
        const refused = (field: string, reason: string) => ({ type: "Refused", faults: [{ field, reason }] })
        expect(yield* ask()).toEqual(refused("channel", "whatsapp needs a WhatsApp account, and this org has none"))
        yield* account("1001")
        yield* account("1002")
        expect(yield* ask()).toEqual(
          refused("payloadJson.from", "is required: this org has more than one WhatsApp account")
        )
        const stranger = "is not the id or phoneNumberId of a WhatsApp account of this org"
        expect(yield* ask({ body: '{"text":"a","from":"1003"}' })).toEqual(refused("payloadJson.from", stranger))
        const [other] = yield* acceptMessages(OrgId.make("globex"), [whatsapp({ body: '{"text":"a","from":"1001"}' })])
        expect(other).toEqual(refused("payloadJson.from", stranger))
      })
    )
  )

  it.effect("is told everything that is wrong with it at once", () =>
    atNoon(
      Effect.gen(function* () {
        yield* account("1001")
        const refused = yield* ask({ to: "nobody", body: "{}", templateCode: "t", expiresAt: noon })
        expect(refused.type === "Refused" && refused.faults.map(({ field }) => field)).toEqual([
          "to",
          "payloadJson.language",
          "expiresAt"
        ])
      })
    )
  )
})

describe("requests judged together", () => {
  it.effect("are answered in their order, and one that is refused does not hurt the others", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* endpoint
        const answers = yield* acceptMessages(acme, [
          request(to),
          request("nobody", { expiresAt: noon }),
          request(to, { channel: "amqp" }),
          request(to)
        ])
        expect(answers.map(({ type }) => type)).toEqual(["Accepted", "Refused", "Refused", "Accepted"])
        expect(answers[1]).toEqual({
          type: "Refused",
          faults: [
            { field: "to", reason: "is not the id of a webhook endpoint of this org" },
            { field: "expiresAt", reason: "must be in the future" }
          ]
        })
      })
    )
  )

  it.effect("ask the store nothing when all are refused", () =>
    atNoon(
      Effect.gen(function* () {
        expect(yield* acceptMessages(acme, [])).toEqual([])
        const away = { append: () => Effect.die(new Error("asked")) } as unknown as EventStore["Service"]
        const [refused] = yield* acceptMessages(acme, [request("nobody")]).pipe(Effect.provideService(EventStore, away))
        expect(refused!.type).toBe("Refused")
      })
    )
  )
})

describe("an idempotency key", () => {
  it.effect("is used by the first request; later ones learn whether they are the same", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* endpoint
        const ask = (change: Partial<MessageRequest> = {}) =>
          Effect.map(acceptMessages(acme, [request(to, { idempotencyKey: "k", ...change })]), (all) => all[0]!)
        const first = yield* ask()
        yield* TestClock.adjust("1 minute")
        const again = yield* ask()
        expect([first.type, again.type]).toEqual(["Accepted", "AlreadyAccepted"])
        expect(idOf(again)).toBe(idOf(first))
        const others: ReadonlyArray<Partial<MessageRequest>> = [
          { body: '{"other":1}' },
          { eventType: "e" },
          { templateCode: "t" },
          { dossierId: "d" },
          { orderingKey: "o" },
          { correlationId: "c" },
          { metadata: { a: "b" } },
          { deliverAt: noonPlus(3_600_000) },
          { expiresAt: noonPlus(3_600_000) },
          { retry: { strategy: "fixed", baseMs: 1 } }
        ]
        for (const other of others) expect((yield* ask(other)).type, JSON.stringify(other)).toBe("KeyReused")
      })
    )
  )

  it.effect("still answers its message when the request would be refused today", () =>
    atNoon(
      Effect.gen(function* () {
        const { id } = yield* endpoint
        const keyed = request(id, { idempotencyKey: "order 17", expiresAt: noonPlus(1_000) })
        const first = (yield* acceptMessages(acme, [keyed]))[0]
        yield* TestClock.adjust("2 seconds")
        yield* (yield* Destinations).remove(webhook, acme, id)
        const [again, other, unkeyed] = yield* acceptMessages(acme, [
          keyed,
          { ...keyed, body: "[]" },
          { ...keyed, idempotencyKey: null }
        ])
        expect(again).toMatchObject({ type: "AlreadyAccepted", message: { id: idOf(first) } })
        expect(other).toEqual({ type: "KeyReused" })
        expect(unkeyed).toMatchObject({ type: "Refused" })
      })
    )
  )

  it.effect("does not take one field's text for another's", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: to } = yield* endpoint
        const ask = (change: Partial<MessageRequest>) =>
          acceptMessages(acme, [request(to, { idempotencyKey: "k", ...change })])
        yield* ask({ templateCode: "x", dossierId: null })
        expect((yield* ask({ templateCode: null, dossierId: "x" }))[0]!.type).toBe("KeyReused")
      })
    )
  )
})
