import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { commandConsent } from "../../../src/application/consents/consents.ts"
import { type EventRequest, publishEvents } from "../../../src/application/events/publishEvents.ts"
import { eraseEvent, readMessages } from "../../../src/application/events/readEvents.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventSchemas } from "../../../src/application/ports/EventSchemas.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { replayOnce } from "../../../src/application/replays/replayDeadLetters.ts"
import { readReplay, requestReplay } from "../../../src/application/replays/replays.ts"
import { type EventId, OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint, webhook } from "../../contracts/destinations/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const page = { cursor: null, limit: 100 }
const plain = { reason: null, idempotencyKey: null }
const noSchemas = Layer.succeed(EventSchemas, {} as EventSchemas["Service"])
const layer = Layer.mergeAll(MemoryPorts.layer, Fingerprints.layer, noSchemas)

const test = (rule: string, body: Effect.Effect<void, unknown, Layer.Success<typeof layer>>) =>
  it.effect(rule, () => Effect.provide(body, layer))

const publish = Effect.fnUntraced(function* (...asked: ReadonlyArray<Partial<EventRequest>>) {
  const requests = asked.map((one) => ({
    ...{ eventType: "order.paid", data: "1.10", dossierId: null, orderingKey: null, correlationId: null },
    ...{ metadata: null, deliverAt: null, expiresAt: null, idempotencyKey: null },
    ...one
  }))
  const published = yield* publishEvents(acme, requests)
  return published.map((one) => ("event" in one ? one.event.id : (undefined as never)))
})

const work = Effect.gen(function* () {
  for (let idle = 0; idle < 3; ) {
    const worked = yield* replayOnce().pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(false)))
    idle = worked ? 0 : idle + 1
    yield* TestClock.adjust("11 seconds")
  }
})

const messagesOf = Effect.fnUntraced(function* (events: ReadonlyArray<EventId>) {
  return yield* Effect.forEach(events, (id) => Effect.map(readMessages(acme, id, page), ({ items }) => items))
})

const start = DateTime.makeUnsafe(0)

describe("the events an endpoint missed", () => {
  test(
    "are sent to it once, with their own bytes, and no others",
    Effect.gen(function* () {
      const early = yield* publish({})
      yield* TestClock.adjust("1 hour")
      const since = yield* DateTime.now
      const missed = yield* publish({}, { eventType: "order.sent" }, {})
      const unwanted = yield* publish({ eventType: "user.left" })
      const { id: to } = yield* makeEndpoint(acme, { eventTypes: ["order.*"] })
      const had = yield* publish({})
      const asked = yield* requestReplay(acme, { missed: { to, since } }, plain)
      expect(asked).toMatchObject({ matched: 3, status: "RUNNING" })
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 3, skipped: 0 })
      const sent = (yield* messagesOf(missed)).flat()
      expect(sent.map(({ destination, status }) => [destination, status])).toEqual(missed.map(() => [to, "QUEUED"]))
      const body = yield* (yield* Bodies).load(sent[0]!.id)
      expect(body).toMatch(/^\{"type":"order\.paid","timestamp":"[^"]+","data":1\.10\}$/)
      expect((yield* messagesOf([...early, ...unwanted])).flat()).toEqual([])
      expect((yield* messagesOf(had)).flat()).toHaveLength(1)
      const again = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      expect(again.matched).toBe(1)
    })
  )

  test(
    "are left out when they are erased, or over, by the time it is their turn",
    Effect.gen(function* () {
      const expiresAt = DateTime.add(yield* DateTime.now, { hours: 1 })
      const [erased, over, good] = yield* publish({}, { expiresAt }, {})
      const { id: to } = yield* makeEndpoint(acme)
      const asked = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      yield* eraseEvent(acme, erased!, null)
      yield* TestClock.adjust("2 hours")
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ matched: 3, replayed: 1, skipped: 2 })
      expect((yield* messagesOf([erased!, over!, good!])).map(({ length }) => length)).toEqual([0, 0, 1])
    })
  )

  test(
    "are left out when the consent of their dossier was withdrawn by the time it is their turn",
    Effect.gen(function* () {
      const [withdrawn, good] = yield* publish({ dossierId: "d-1" }, { dossierId: "d-2" })
      const { id: to } = yield* makeEndpoint(acme)
      const asked = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      yield* commandConsent(
        { orgId: acme, dossierId: "d-1", channel: "webhook" },
        { type: "WithdrawConsent", source: "the customer" }
      )
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ matched: 2, replayed: 1, skipped: 1 })
      expect((yield* messagesOf([withdrawn!, good!])).map(({ length }) => length)).toEqual([0, 1])
    })
  )

  test(
    "are not sent, and not counted as sent, when it is gone by the time it is their turn",
    Effect.gen(function* () {
      const [missed] = yield* publish({})
      const { id: to } = yield* makeEndpoint(acme)
      const asked = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      yield* (yield* Destinations).remove(webhook, acme, to)
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 0, skipped: 1 })
      expect((yield* messagesOf([missed!])).flat()).toEqual([])
    })
  )

  test(
    "go by the endpoint's own retry policy, and name the replay that sent them",
    Effect.gen(function* () {
      const [missed] = yield* publish({})
      const retry = { strategy: "fixed", baseMs: 5_000, attemptsMax: 2 } as const
      const { id: to } = yield* makeEndpoint(acme, { retry })
      const asked = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      yield* work
      const [message] = (yield* messagesOf([missed!])).flat()
      const { facts } = yield* (yield* EventStore).load(message!.id)
      expect(facts[0]!.fact).toMatchObject({ type: "MessageQueued", replayId: asked.id, retry })
    })
  )

  test(
    "become one message each, wherever the replay is cut off and whoever else sends them, and are counted once",
    Effect.gen(function* () {
      const missed = yield* publish(...Array.from({ length: 12 }, () => ({})))
      const { id: to } = yield* makeEndpoint(acme)
      const one = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      const two = yield* requestReplay(acme, { missed: { to, since: start } }, plain)
      const gone = Effect.fail(new StoreUnavailable({ cause: new Error("gone") }))
      const [store, journals] = [yield* EventStore, yield* Journals]
      let cuts = 0
      const halved: EventStore["Service"] = {
        ...store,
        append: (entries) =>
          cuts++ < 2 ? Effect.andThen(store.append(entries.slice(0, entries.length / 2)), gone) : store.append(entries)
      }
      const lost: Journals["Service"] = {
        ...journals,
        append: (journal, expected, facts, at, actor) =>
          facts[0]!.name.startsWith("ReplayAdvanced") && cuts++ % 2 === 0
            ? gone
            : journals.append(journal, expected, facts, at, actor)
      }
      yield* work.pipe(Effect.provideService(EventStore, halved), Effect.provideService(Journals, lost))
      const results = [yield* readReplay(acme, one.id), yield* readReplay(acme, two.id)]
      expect(results.map(({ status, matched, replayed, skipped }) => [status, matched, replayed + skipped])).toEqual([
        ["COMPLETED", 12, 12],
        ["COMPLETED", 12, 12]
      ])
      expect(results[0]!.replayed + results[1]!.replayed).toBe(12)
      expect((yield* messagesOf(missed)).map(({ length }) => length)).toEqual(missed.map(() => 1))
      const claimed = yield* (yield* Queue).claim({
        ...{ worker: "w", limit: 100, perLane: 100, room: new Map(), fullOrgs: new Set<never>() },
        lease: Duration.minutes(1)
      })
      expect(claimed?.messages).toHaveLength(12)
    })
  )
})
