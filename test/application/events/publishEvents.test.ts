import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as AjvEventSchemas from "../../../src/adapters/ajv/AjvEventSchemas.ts"
import { messagesOfEvents } from "../../../src/application/events/messageOfEvent.ts"
import { type EventRequest, type Publication, publishEvents } from "../../../src/application/events/publishEvents.ts"
import { loadEvent } from "../../../src/application/events/readEvents.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { EventId, type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { noon } from "../../domain/message/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")

const ports = Layer.mergeAll(MemoryPorts.layer, Fingerprints.layer, AjvEventSchemas.layer)

const atNoon = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof ports>>) =>
  TestClock.setTime(DateTime.toEpochMillis(noon)).pipe(Effect.andThen(effect), Effect.provide(ports))

const request = (change: Partial<EventRequest> = {}): EventRequest => ({
  ...{ eventType: "order.paid", dossierId: null, orderingKey: null, correlationId: null, metadata: null },
  ...{ deliverAt: null, expiresAt: null, data: "{}", idempotencyKey: null },
  ...change
})

const idOf = (publication: Publication | undefined): EventId => {
  if (publication?.type !== "Published") throw new Error(`not published: ${JSON.stringify(publication)}`)
  return publication.event.id
}

const messagesOf = (id: EventId) =>
  Effect.flatMap(Events, (events) =>
    Effect.map(events.messagesOf(id, { cursor: null, limit: 10_000 }), ({ items }) => items)
  )

describe("publishing", () => {
  it.effect("makes a message for each endpoint under an id that is made of event and endpoint", () =>
    atNoon(
      Effect.gen(function* () {
        const { id: one } = yield* makeEndpoint(acme)
        yield* makeEndpoint(acme)
        const [publication] = yield* publishEvents(acme, [request()])
        const id = idOf(publication)
        const messages = yield* messagesOf(id)
        expect(new Set(messages).size).toBe(2)
        // Whoever makes it again makes the same one.
        const event = (yield* loadEvent(acme, id))!
        const again = (yield* messagesOfEvents(acme))(
          event,
          { destination: one, channel: "webhook", retry: null },
          noon,
          {}
        )
        expect(messages).toContain(again.messageId)
        const [result] = yield* (yield* EventStore).append([again])
        expect(result).toEqual({ type: "VersionConflict" })
        expect(again.messageId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      })
    )
  )

  it.effect("gives the messages of earlier events lower ids, so that a lane keeps the order of a batch", () =>
    atNoon(
      Effect.gen(function* () {
        yield* makeEndpoint(acme)
        const publications = yield* publishEvents(
          acme,
          Array.from({ length: 50 }, () => request())
        )
        const ids: Array<MessageId> = []
        for (const publication of publications) ids.push(...(yield* messagesOf(idOf(publication))))
        expect(ids).toEqual(ids.toSorted())
      })
    )
  )

  it.effect("of more messages than go to the store at once answers each request in its place", () =>
    atNoon(
      Effect.gen(function* () {
        for (let n = 0; n < 60; n++) yield* makeEndpoint(acme)
        const requests = Array.from({ length: 100 }, (_, n) =>
          request({ data: String(n), ...(n % 10 === 3 && { expiresAt: DateTime.makeUnsafe(0) }) })
        )
        const publications = yield* publishEvents(acme, requests)
        expect(publications.map(({ type }) => type)).toEqual(
          requests.map((_, n) => (n % 10 === 3 ? "Refused" : "Published"))
        )
        const { body } = yield* Events
        for (const n of [0, 50, 99]) {
          expect(yield* body(idOf(publications[n]))).toBe(
            `{"type":"order.paid","timestamp":"${DateTime.formatIso(noon)}","data":${n}}`
          )
        }
        expect(yield* messagesOf(idOf(publications[99]))).toHaveLength(60)
      })
    )
  )

  it.effect("under a promised id happens once, with a key or without", () =>
    atNoon(
      Effect.gen(function* () {
        yield* makeEndpoint(acme)
        const id = EventId.make("0197f3d0-0000-7000-8000-000000000001")
        const [first] = yield* publishEvents(acme, [request({ id })])
        const [again, late] = yield* publishEvents(acme, [
          request({ id }),
          request({ id, expiresAt: DateTime.makeUnsafe(0) })
        ])
        expect(idOf(first)).toBe(id)
        expect([again?.type, late?.type]).toEqual(["AlreadyPublished", "AlreadyPublished"])
        expect(yield* messagesOf(id)).toHaveLength(1)
      })
    )
  )
})
