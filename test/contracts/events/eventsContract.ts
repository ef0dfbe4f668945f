/** What every adapter of `Events` promises, together with the ports its messages go through. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { type DateTime, Duration, Effect, type Layer } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { type EventFilter, Events, type NewEvent } from "../../../src/application/ports/Events.ts"
import type { Page, StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { type EventView, journalOf } from "../../../src/domain/event/event.ts"
import { type DestinationId, EventId, type OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { makeAlertTarget, makeEndpoint, makeTarget, webhook } from "../destinations/samples.ts"
import { projected } from "../replays/deadLetterSamples.ts"
import { searched } from "../replays/searched.ts"
import { allRead, forgetEvents, forgetMessages, sum } from "../retention/forgetting.ts"
import {
  delivered,
  endedBefore,
  inMillis,
  newLane,
  newOrg,
  next,
  opened,
  type Sample,
  type StorePorts,
  settled,
  started
} from "../sample.ts"
import { refused } from "../written.ts"

const HOUR = 3_600_000

interface Wishes {
  readonly id?: EventId
  readonly at?: DateTime.Utc
  readonly body?: string
  readonly key?: string
  readonly eventType?: string
  readonly correlationId?: string
}

interface Published {
  readonly event: NewEvent
  readonly messages: ReadonlyArray<Sample>
}

const newEventId = () => EventId.make(randomUUID())

/** An event with a message for each of the lanes. */
const eventFor = (orgId: OrgId, lanes: ReadonlyArray<DestinationId>, wishes: Wishes = {}): Published => {
  const { id = newEventId(), at = inMillis(0), body = '{"data":12345678901234567890}', key } = wishes
  const { eventType = "order.paid", correlationId = null } = wishes
  const steps = lanes.map((destination) =>
    opened({ orgId, destination, eventId: id, body: { ofEvent: id }, acceptedAt: at })
  )
  const fact = {
    type: "EventPublished",
    ...{ orgId, eventType, matched: lanes.length, correlationId, dossierId: null, orderingKey: null, metadata: null },
    ...{ deliverAt: null, expiresAt: null }
  } as const
  const idempotency = key === undefined ? null : { key, requestHash: "h" }
  const messages = steps.map(({ entry }) => ({ ...entry, at }))
  return {
    event: { id, fact, at, actor: "operator", body, idempotency, messages },
    messages: steps.map(({ after }) => after)
  }
}

const publish = Effect.fnUntraced(function* (...published: ReadonlyArray<Published>) {
  return yield* (yield* Events).publish(published.map(({ event }) => event))
})

const claim = (limit: number) =>
  Effect.flatMap(Queue, (queue) =>
    queue.claim({
      worker: "w",
      limit,
      perLane: limit,
      room: new Map(),
      fullOrgs: new Set<never>(),
      lease: Duration.minutes(5)
    })
  )

const everything = <Item>(
  read: (page: { cursor: string | null; limit: number }) => Effect.Effect<Page<Item>, StoreUnavailable, StorePorts>
) =>
  Effect.gen(function* () {
    const items: Array<Item> = []
    for (let cursor: string | null = null; ; ) {
      const page: Page<Item> = yield* read({ cursor, limit: 2 })
      expect(page.items.length).toBeLessThanOrEqual(2)
      items.push(...page.items)
      if (page.nextCursor === null) return items
      cursor = page.nextCursor
    }
  })

/** What a replay of the events of type order.paid that the destination missed is for. */
const missedBy = Effect.fnUntraced(function* (orgId: OrgId, to: DestinationId, since: DateTime.Utc) {
  const replays = yield* Replays
  const id = ReplayId.make(randomUUID())
  const set = { missed: { to, since, eventTypes: ["order.paid", "order.sent"] } }
  const opened = yield* replays.open({
    ...{ id, orgId, set, selection: { missed: { to, since } }, reason: null, requestedAt: inMillis(0) },
    idempotency: null
  })
  yield* searched(opened.job, 2)
  const items = yield* replays.items(id, 0, 100)
  return items.map((item) => ("eventId" in item ? item.eventId : null))
})

export const eventsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  describe(`${name} events`, () => {
    test(
      "are stored with a message for each endpoint, and every message has the same bytes",
      Effect.gen(function* () {
        const lanes = [newLane(), newLane(), newLane()]
        const published = eventFor(newOrg(), lanes, { body: '{"n": 1.10, "text":"\\u0000 “é” 🚚"}' })
        expect(yield* publish(published)).toEqual([{ type: "Published" }])
        const { event, messages } = published

        const [fact, ...more] = yield* (yield* Journals).load(journalOf(event.id))
        expect(more).toEqual([])
        expect(fact).toMatchObject({ version: 1, name: "EventPublished@1", actor: "operator" })
        const store = yield* EventStore
        for (const { id } of messages) expect((yield* store.load(id)).version).toBe(1)

        const batch = yield* claim(10)
        expect(batch?.messages.map(({ lane }) => lane).toSorted()).toEqual(lanes.toSorted())
        expect(new Set(batch?.messages.map(({ body }) => body))).toEqual(new Set([event.body]))
        expect(batch?.messages.every(({ queued }) => queued.eventId === event.id)).toBe(true)
        expect(yield* (yield* Events).body(event.id)).toBe(event.body)
        const found = yield* everything((page) => Effect.flatMap(Events, (events) => events.messagesOf(event.id, page)))
        expect(found.toSorted()).toEqual(messages.map(({ id }) => id).toSorted())
      })
    )

    test(
      "that nobody wants are stored too",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { event, messages } = eventFor(orgId, [])
        expect(yield* publish({ event, messages })).toEqual([{ type: "Published" }])
        const { items } = yield* (yield* Events).list(orgId, {}, { cursor: null, limit: 9 })
        expect(items).toMatchObject([{ id: event.id, matched: 0, eventType: "order.paid", bodyErased: false }])
        expect(yield* (yield* Events).messagesOf(event.id, { cursor: null, limit: 9 })).toEqual({
          items: [],
          nextCursor: null
        })
      })
    )

    test(
      "use a key once, whoever races for it, and leave nothing of the others",
      Effect.gen(function* () {
        const orgId = newOrg()
        const racing = Array.from({ length: 6 }, () => eventFor(orgId, [newLane(), newLane()], { key: "k" }))
        const results = (yield* Effect.forEach(racing, (one) => publish(one), { concurrency: "unbounded" })).flat()
        expect(results.filter(({ type }) => type === "Published")).toHaveLength(1)
        const winner = racing[results.findIndex(({ type }) => type === "Published")]!.event.id
        expect(results.filter(({ type }) => type === "DuplicateKey")).toEqual(
          Array.from({ length: 5 }, () => ({ type: "DuplicateKey", eventId: winner, requestHash: "h" }))
        )
        expect(yield* (yield* Events).publishedUnder(orgId, "k")).toEqual({ eventId: winner, requestHash: "h" })
        const store = yield* EventStore
        for (const { event, messages } of racing) {
          for (const { id } of messages) expect((yield* store.load(id)).version).toBe(event.id === winner ? 1 : 0)
        }
        expect((yield* claim(20))?.messages).toHaveLength(2)
        // A key of one org is free in another, and so is a key of messages.
        expect(yield* publish(eventFor(newOrg(), [], { key: "k" }))).toEqual([{ type: "Published" }])
        const message = opened({ orgId, idempotency: { orgId, key: "k", requestHash: "h" } })
        expect((yield* store.append([message.entry]))[0]!.type).toBe("Appended")
      })
    )

    test(
      "whose id was promised are stored once under it",
      Effect.gen(function* () {
        const orgId = newOrg()
        const promised = eventFor(orgId, [newLane()])
        const other = eventFor(orgId, [newLane()])
        expect(yield* publish(promised)).toEqual([{ type: "Published" }])
        expect(yield* publish(promised, other)).toEqual([{ type: "AlreadyThere" }, { type: "Published" }])
        expect((yield* claim(9))?.messages).toHaveLength(2)
      })
    )

    test(
      "stand or fall alone when they come together",
      Effect.gen(function* () {
        const orgId = newOrg()
        const first = eventFor(orgId, [newLane()], { key: "k" })
        yield* publish(first)
        const [lane, other] = [newLane(), newLane()]
        const together = [eventFor(orgId, [lane]), eventFor(orgId, [newLane()], { key: "k" }), eventFor(orgId, [other])]
        expect((yield* publish(...together)).map(({ type }) => type)).toEqual([
          "Published",
          "DuplicateKey",
          "Published"
        ])
        const claimed = (yield* claim(9))!.messages.map((message) => message.lane)
        expect(claimed.toSorted()).toEqual([lane, other, first.messages[0]!.lane].toSorted())
      })
    )

    test(
      "find whoever wants their type: all, the very type, or its beginning",
      Effect.gen(function* () {
        const orgId = newOrg()
        const want = (eventTypes: ReadonlyArray<string> | null) =>
          Effect.map(makeEndpoint(orgId, { eventTypes }), ({ id }) => id)
        const all = yield* want(null)
        const star = yield* want(["*"])
        const exact = yield* want(["order.paid"])
        const beginning = yield* want(["order.*"])
        const both = yield* want(["order.paid", "order.*", "x"])
        const deep = yield* want(["order.paid.*"])
        const others = yield* want(["order", "order.pai", "orders.*", "rder.paid"])
        yield* makeEndpoint(newOrg())
        yield* makeAlertTarget(orgId)
        yield* makeTarget(orgId)
        const { matching } = yield* Events
        const told = (type: string) =>
          Effect.map(matching(orgId, type), (found) => found.map(({ destination }) => destination).toSorted())
        expect(yield* told("order.paid")).toEqual([all, star, exact, beginning, both].toSorted())
        expect(yield* told("order.paid.late")).toEqual([all, star, beginning, both, deep].toSorted())
        expect(yield* told("order")).toEqual([all, star, others].toSorted())
        expect(yield* told("nothing")).toEqual([all, star].toSorted())

        const destinations = yield* Destinations
        yield* destinations.setPaused(webhook, orgId, all, true)
        yield* destinations.remove(webhook, orgId, star)
        yield* destinations.change(webhook, orgId, exact, { settings: { eventTypes: ["nothing"] } })
        yield* destinations.change(webhook, orgId, both, { settings: { eventTypes: null } })
        expect(yield* told("order.paid")).toEqual([all, beginning, both].toSorted())
        expect(yield* told("nothing")).toEqual([all, both, exact].toSorted())
      })
    )

    test(
      "know the retry policy of whoever wants them",
      Effect.gen(function* () {
        const orgId = newOrg()
        const retry = { strategy: "fixed", baseMs: 7, attemptsMax: 2 } as const
        yield* makeEndpoint(orgId, { retry })
        yield* makeEndpoint(newOrg())
        expect(yield* (yield* Events).matching(orgId, "x")).toMatchObject([{ channel: "webhook", retry }])
        const other = newOrg()
        yield* makeEndpoint(other)
        expect(yield* (yield* Events).matching(other, "x")).toMatchObject([{ channel: "webhook", retry: null }])
      })
    )

    test(
      "keep the body for the other messages when one of them loses it, or gets another",
      Effect.gen(function* () {
        const { event, messages } = eventFor(newOrg(), [newLane(), newLane(), newLane()])
        yield* publish({ event, messages })
        const [erased, edited, untouched] = messages as [Sample, Sample, Sample]
        const bodies = yield* Bodies
        const store = yield* EventStore
        expect(yield* bodies.erase(erased.id)).toBe(true)
        const begun = started(edited)
        const dead = settled(begun.after, refused())
        const again = next(
          dead.after,
          { type: "ReplayMessage", now: inMillis(0), reason: null, edited: true },
          { opening: { body: "mine", idempotency: null } }
        )
        for (const { entry } of [begun, dead, again]) {
          expect((yield* store.append([entry]))[0]!.type).toBe("Appended")
        }
        expect(yield* bodies.load(erased.id)).toBeNull()
        expect(yield* bodies.load(edited.id)).toBe("mine")
        expect(yield* bodies.load(untouched.id)).toBe(event.body)
        expect(yield* (yield* Events).body(event.id)).toBe(event.body)
      })
    )

    test(
      "are erased with the bodies of all their messages, and no other's",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { event, messages } = eventFor(orgId, [newLane(), newLane()])
        const other = eventFor(orgId, [newLane()])
        yield* publish({ event, messages }, other)
        const events = yield* Events
        const bodies = yield* Bodies
        yield* events.erase(event.id)
        expect(yield* events.body(event.id)).toBeNull()
        for (const { id } of messages) expect(yield* bodies.load(id)).toBeNull()
        expect(yield* bodies.load(other.messages[0]!.id)).toBe(other.event.body)
        // A message that comes later finds no body.
        const late = opened({ orgId, eventId: event.id, body: { ofEvent: event.id } })
        yield* (yield* EventStore).append([late.entry])
        expect(yield* bodies.load(late.after.id)).toBeNull()
      })
    )

    test(
      "are listed newest first, as far as they are asked for",
      Effect.gen(function* () {
        const orgId = newOrg()
        const times = [-4, -3, -2, -1].map((hours) => inMillis(hours * HOUR))
        const [first, second, third, fourth] = [
          eventFor(orgId, [], { at: times[0]!, eventType: "a", correlationId: "c" }),
          eventFor(orgId, [], { at: times[1]!, eventType: "b" }),
          eventFor(orgId, [], { at: times[2]!, eventType: "a" }),
          eventFor(orgId, [], { at: times[3]!, eventType: "b", correlationId: "c" })
        ] as const
        yield* publish(third, first, fourth, second)
        yield* publish(eventFor(newOrg(), []))
        const listed = (filter: EventFilter) =>
          Effect.map(
            everything((page) => Effect.flatMap(Events, ({ list }) => list(orgId, filter, page))),
            (events: ReadonlyArray<EventView>) => events.map(({ id }) => id)
          )
        const ids = (...published: ReadonlyArray<Published>) => published.map(({ event }) => event.id)
        expect(yield* listed({})).toEqual(ids(fourth, third, second, first))
        expect(yield* listed({ eventType: "a" })).toEqual(ids(third, first))
        expect(yield* listed({ correlationId: "c" })).toEqual(ids(fourth, first))
        expect(yield* listed({ dossierId: "d" })).toEqual([])
        expect(yield* listed({ createdAfter: times[1]!, createdBefore: times[3]! })).toEqual(ids(third))
      })
    )

    test(
      "have types, each of which is told once",
      Effect.gen(function* () {
        const orgId = newOrg()
        const types = Effect.flatMap(Events, (events) => events.types(orgId))
        expect(yield* types).toEqual([])
        yield* publish(...["b", "a", "b", "c.d"].map((eventType) => eventFor(orgId, [], { eventType })))
        yield* publish(eventFor(newOrg(), [], { eventType: "x" }))
        expect((yield* types).toSorted()).toEqual(["a", "b", "c.d"])
      })
    )

    test(
      "that an endpoint never had a message of are found for a replay, oldest first, while their body is there",
      Effect.gen(function* () {
        const orgId = newOrg()
        const endpoint = newLane()
        const at = (hours: number) => ({ at: inMillis(hours * HOUR) })
        const early = eventFor(orgId, [newLane()], at(-9))
        const had = eventFor(orgId, [endpoint, newLane()], at(-4))
        const [missed, nobody, last] = [
          eventFor(orgId, [newLane()], at(-3)),
          eventFor(orgId, [], at(-2)),
          eventFor(orgId, [newLane()], at(-1))
        ] as const
        yield* publish(early, had, last, missed, nobody, eventFor(newOrg(), [newLane()]))
        const typed = { eventType: "b", ...at(-2) }
        const [other, erased] = [eventFor(orgId, [], typed), eventFor(orgId, [], at(-2))] as const
        const later = eventFor(orgId, [], at(1))
        yield* publish(other, erased, later)
        yield* (yield* Events).erase(erased.event.id)
        const missing = missedBy(orgId, endpoint, inMillis(-5 * HOUR))
        expect(yield* missing).toEqual([missed, nobody, last].map(({ event }) => event.id))
        // Whoever sends it afterwards makes it one of the event's messages.
        const late = opened({
          orgId,
          destination: endpoint,
          eventId: missed.event.id,
          body: { ofEvent: missed.event.id }
        })
        yield* (yield* EventStore).append([late.entry])
        expect(yield* missing).toEqual([nobody, last].map(({ event }) => event.id))
        expect(yield* (yield* Bodies).load(late.after.id)).toBe(missed.event.body)
      })
    )

    test(
      "are forgotten once none of their messages is left",
      Effect.gen(function* () {
        const orgId = newOrg()
        const long = inMillis(-3 * HOUR)
        const lanes = [newLane(), newLane()]
        const gone = eventFor(orgId, lanes, { at: long, key: "k" })
        const kept = eventFor(orgId, [newLane(), newLane()], { at: long })
        const unwanted = eventFor(orgId, [], { at: long })
        const young = eventFor(orgId, [])
        yield* publish(gone, kept, unwanted, young)
        const store = yield* EventStore
        const end = Effect.fnUntraced(function* (sample: Sample, outcome: Parameters<typeof settled>[1]) {
          const begun = started(sample)
          const done = settled(begun.after, outcome)
          for (const { entry } of [begun, done]) yield* store.append([{ ...entry, at: inMillis(-2 * HOUR) }])
          return done.after
        })
        const samples = [
          yield* end(gone.messages[0]!, delivered),
          yield* end(gone.messages[1]!, delivered),
          yield* end(kept.messages[0]!, delivered),
          yield* end(kept.messages[1]!, refused())
        ]
        yield* projected(samples)
        const events = yield* Events
        const before = endedBefore(inMillis(-HOUR))
        yield* allRead
        expect(yield* forgetEvents(before)).toBe(1)
        expect(sum(yield* forgetMessages(before))).toBe(3)
        expect(yield* events.body(gone.event.id)).toBe(gone.event.body)
        let removed = 0
        // A store that keeps streams elsewhere may still be following what was written there.
        while (removed === 0) removed = yield* Effect.delay(forgetEvents(before), "5 millis")
        expect(removed).toBe(1)
        const { items } = yield* events.list(orgId, {}, { cursor: null, limit: 9 })
        expect(items.map(({ id }) => id)).toEqual([young.event.id, kept.event.id])
        expect(yield* (yield* Journals).load(journalOf(gone.event.id))).toEqual([])
        expect(yield* events.body(gone.event.id)).toBeNull()
        expect(yield* events.publishedUnder(orgId, "k")).toBeNull()
        expect(yield* (yield* Bodies).load(kept.messages[1]!.id)).toBe(kept.event.body)
        // That it was sent is known as long as the event is.
        const lane = kept.messages[0]!.lane
        expect(yield* missedBy(orgId, lane, long)).toEqual([young.event.id])
      })
    )

    test(
      "are forgotten by their org's own days where it has some, shorter or longer, and never by more than the most",
      Effect.gen(function* () {
        const orgs = yield* Orgs
        const events = yield* Events
        const own = { short: newOrg(), long: newOrg(), plain: newOrg() }
        yield* orgs.set(own.short, { ...unset, retention: { endedDays: 2 } })
        yield* orgs.set(own.long, { ...unset, retention: { endedDays: 30 } })
        const names = new Map<EventId, string>()
        for (const [name, orgId] of Object.entries(own)) {
          for (const days of [1, 3, 10]) {
            const published = eventFor(orgId, [], { at: inMillis(-days * 24 * HOUR) })
            yield* publish(published)
            names.set(published.event.id, `${name} ${days}`)
          }
        }
        const left = Effect.fnUntraced(function* () {
          const pages = yield* Effect.forEach(Object.values(own), (orgId) =>
            events.list(orgId, {}, { cursor: null, limit: 9 })
          )
          return pages.flatMap(({ items }) => items.map(({ id }) => names.get(id)))
        })
        const before = endedBefore(inMillis(-7 * 24 * HOUR))
        yield* allRead
        expect(yield* forgetEvents(before)).toBe(3)
        const kept = ["short 1", "long 1", "long 3", "long 10", "plain 1", "plain 3"]
        expect(yield* left()).toEqual(kept)
        yield* forgetEvents({ ...before, ended: null, daysMax: 5 })
        expect(yield* left()).toEqual(kept.filter((name) => name !== "long 10"))
      })
    )
  })
}
