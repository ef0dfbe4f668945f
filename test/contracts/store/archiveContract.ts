/**
 * What every Archive promises of the log, and what MessageData and DerivedRows promise of the rest: what they show, and that
 * another store can be made of it. `layer` gives an empty store to each test.
 */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { Archive, type ArchivedFact } from "../../../src/application/ports/Archive.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { DerivedRows } from "../../../src/application/ports/DerivedRows.ts"
import { EventStore, type LoggedFact } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageData } from "../../../src/application/ports/MessageData.ts"
import { Parked } from "../../../src/application/ports/Parked.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { initialState, stateOf } from "../../../src/domain/circuit/state.ts"
import { EventId, type MessageId } from "../../../src/domain/ids.ts"
import type { Place, Wait } from "../../../src/domain/message/place.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { asWorker } from "../deliver/claims.ts"
import {
  delivered,
  inMillis,
  newLane,
  newMessageId,
  newOrg,
  now,
  opened,
  readLogUntil,
  type Step,
  settled,
  started,
  unreachable
} from "../sample.ts"
import { write } from "../written.ts"

type LogPorts = Archive | EventStore | Journals

const whole = Effect.gen(function* () {
  const { facts: written } = yield* (yield* EventStore).extent
  return yield* readLogUntil((facts) => facts.length >= written)
})

/** Three streams whose facts lie between each other in the log. */
const populated = Effect.gen(function* () {
  const [one, other] = [opened(), opened()]
  const begun = started(one.after)
  yield* write(one, other, begun)
  const journal = `circuit-${randomUUID()}` as const
  yield* (yield* Journals).append(journal, 0, [{ name: "Counted@1", data: '{"n":1}' }], now(), "operator")
  yield* write(settled(begun.after, delivered))
  return { one: one.after.id, other: other.after.id, journal }
})

const withoutPosition = ({ stream, version, name, data, at, actor }: LoggedFact): ArchivedFact => ({
  stream,
  version,
  name,
  data,
  at,
  actor
})

export const archiveContract = <E>(name: string, layer: Layer.Layer<LogPorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, LogPorts>) =>
    it.live(rule, () => Effect.provide(body, layer, { local: true }))

  describe(`${name} archive`, () => {
    for (const limit of [1, 2, 100]) {
      test(
        `gives every stream whole and by version, ${limit} facts at a time`,
        Effect.gen(function* () {
          const archive = yield* Archive
          yield* populated
          const all = yield* whole
          const seen: Array<LoggedFact> = []
          for (;;) {
            const page = yield* archive.byStream(seen.at(-1) ?? null, limit)
            expect(page.length).toBeLessThanOrEqual(limit)
            if (page.length === 0) break
            seen.push(...page)
          }
          expect(seen.toSorted((a, b) => archive.order(a.position, b.position))).toEqual(all)
          const streams = seen.map(({ stream }) => stream).filter((stream, i, each) => stream !== each[i - 1])
          expect(new Set(streams).size).toBe(streams.length)
          for (const stream of streams) {
            const versions = seen.filter((fact) => fact.stream === stream).map(({ version }) => version)
            expect(versions).toEqual(versions.map((_, index) => index + 1))
          }
        })
      )
    }

    test(
      "gives the streams that were asked for, of messages and journals, and leaves out those that are not there",
      Effect.gen(function* () {
        const archive = yield* Archive
        const { one, journal } = yield* populated
        const all = yield* whole
        const names = [`message-${one}`, journal]
        const found = yield* archive.streams([...names, `message-${newMessageId()}`])
        expect([...found.keys()].toSorted()).toEqual(names.toSorted())
        for (const each of names) expect(found.get(each)).toEqual(all.filter(({ stream }) => stream === each))
      })
    )

    test(
      "orders positions as the log is",
      Effect.gen(function* () {
        const { order } = yield* Archive
        yield* populated
        const positions = (yield* whole).map(({ position }) => position)
        for (const [at, position] of positions.entries()) {
          expect(positions.map((other) => order(position, other))).toEqual(positions.map((_, i) => Math.sign(at - i)))
        }
      })
    )

    it.live(
      "makes the same log of the same facts, and nothing else",
      () =>
        Effect.gen(function* () {
          const facts = yield* Effect.provide(Effect.andThen(populated, whole), layer, { local: true })
          yield* Effect.provide(
            Effect.gen(function* () {
              const archive = yield* Archive
              yield* archive.restore(facts.slice(0, 2).map(withoutPosition))
              yield* archive.restore(facts.slice(2).map(withoutPosition))
              yield* archive.restore([])
              expect((yield* whole).map(withoutPosition)).toEqual(facts.map(withoutPosition))
            }),
            layer,
            { local: true }
          )
        }),
      300_000
    )

    test(
      "goes on with no stream but where it ends",
      Effect.gen(function* () {
        const archive = yield* Archive
        const { one } = yield* populated
        const before = yield* whole
        const [first] = (yield* archive.streams([`message-${one}`])).get(`message-${one}`)!
        const fact = withoutPosition(first!)
        for (const version of [1, 4, 6, 7]) {
          expect(yield* archive.restore([{ ...fact, version }]).pipe(Effect.flip, Effect.orDie)).toMatchObject({
            _tag: "NotContinued",
            version
          })
        }
        expect(yield* whole).toEqual(before)
        yield* archive.restore([{ ...fact, version: 5 }]).pipe(Effect.orDie)
        expect(yield* whole).toHaveLength(before.length + 1)
      })
    )
  })
}

type AllPorts = LogPorts | MessageData | DerivedRows | Queue | Circuits | Parked

const waitOf = ({ entry }: Step): Wait => {
  const { queue, expected, facts } = entry
  if (queue?.type !== "Wait") throw new Error("it does not wait")
  const { type: _, ...wait } = queue
  return { ...wait, version: expected + facts.length }
}
const waiting = (step: Step): Place & { readonly type: "Waiting" } => ({ type: "Waiting", ...waitOf(step) })

const claimAll = Effect.gen(function* () {
  const claim = yield* (yield* Queue).claim({
    worker: "w",
    limit: 100,
    perLane: 100,
    room: new Map(),
    fullOrgs: new Set<never>(),
    lease: Duration.seconds(30)
  })
  return claim?.messages ?? []
})

export const derivedContract = <E>(name: string, layer: Layer.Layer<AllPorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, AllPorts>) =>
    it.live(rule, () => Effect.provide(body, layer, { local: true }))
  const isPlaced = Effect.fnUntraced(function* (messageId: MessageId, place: Place, version = 1) {
    const rows = yield* (yield* DerivedRows).compare([{ messageId, version, place }])
    return rows.get(messageId)?.isPlaced
  })

  describe(`${name} belongings`, () => {
    test(
      "are what came with a message, and can be brought back where they are missing",
      Effect.gen(function* () {
        const dataOfMessages = yield* MessageData
        const step = opened({ body: '{"a":1.10}', idempotency: { orgId: "o" as never, key: "k 1", requestHash: "h" } })
        const begun = started(step.after)
        yield* write(
          step,
          begun,
          settled(begun.after, unreachable(), { response: { epoch: 1, attempt: 1, body: "no", headers: null } })
        )
        const { id } = step.after
        const expected = {
          messageId: id,
          queued: expect.stringContaining('"orgId"'),
          body: '{"a":1.10}',
          bodyOf: null,
          key: { orgId: "o", key: "k 1", requestHash: "h" },
          responses: [{ version: 3, epoch: 1, attempt: 1, body: "no", headers: null }]
        }
        const stranger = newMessageId()
        expect(yield* dataOfMessages.load([id, stranger])).toEqual(new Map([[id, expected]]))
        const { queued } = (yield* dataOfMessages.load([id])).get(id)!
        const copy = { ...expected, queued, messageId: stranger, key: { ...expected.key, key: "k 2" } } as never
        yield* dataOfMessages.restore([copy, { ...expected, queued, body: "another", key: null } as never])
        yield* dataOfMessages.restore([copy])
        expect(yield* dataOfMessages.load([id, stranger])).toEqual(
          new Map([
            [id, expected],
            [stranger, copy]
          ])
        )
      })
    )
  })

  describe(`${name} data of events`, () => {
    test(
      "is what was stored with them, and can be stored elsewhere; messages name the event whose body they share",
      Effect.gen(function* () {
        const { load, restore, loadEvents, restoreEvents } = yield* MessageData
        const [eventId, stranger] = [EventId.make(randomUUID()), EventId.make(randomUUID())]
        const data = { eventId, key: { orgId: "o" as never, key: "k 1", requestHash: "h" }, body: '{"a":1.10}' }
        yield* restoreEvents([data])
        yield* restoreEvents([{ ...data, body: "another", key: null }])
        expect(yield* loadEvents([eventId, stranger])).toEqual(new Map([[eventId, data]]))
        const step = opened({ eventId, body: { ofEvent: eventId } })
        yield* write(step)
        const [found] = (yield* load([step.after.id])).values()
        expect(found).toMatchObject({ body: null, bodyOf: eventId })
        const copy = { ...found!, messageId: newMessageId() }
        yield* restore([copy])
        expect(yield* load([copy.messageId])).toEqual(new Map([[copy.messageId, copy]]))
      })
    )
  })

  describe(`${name} derived rows`, () => {
    test(
      "tell whether a message is once where it should be: in its lane, then in a worker's hands",
      Effect.gen(function* () {
        const step = opened()
        yield* write(step)
        const { id } = step.after
        const place = waiting(step)
        const others: ReadonlyArray<Place> = [
          { ...place, lane: newLane() },
          { ...place, dueAt: DateTime.add(place.dueAt, { milliseconds: 1 }) },
          { ...place, version: 2 },
          { ...place, epoch: 2 },
          { ...place, attempt: 1 },
          { ...place, line: "line" },
          { ...place, type: "UnderWay" }
        ]
        const compare = (yield* DerivedRows).compare([{ messageId: id, version: 1, place }])
        expect((yield* compare).get(id)).toEqual({ isPlaced: true, hasBody: true, listed: null })
        for (const other of others) expect(yield* isPlaced(id, other)).toBe(false)
        yield* claimAll
        expect(yield* isPlaced(id, place)).toBe(true)
        expect(yield* isPlaced(id, { ...place, type: "UnderWay" })).toBe(true)
        expect(yield* isPlaced(id, { ...place, version: 2 })).toBe(false)
        expect(yield* isPlaced(id, { type: "Out", dead: false })).toBe(true)
        // It is said to have gone on since.
        expect(yield* isPlaced(id, place, 2)).toBeUndefined()
      })
    )

    test(
      "list every row of lanes and lines, page by page, and know where each stands in its line",
      Effect.gen(function* () {
        const derived = yield* DerivedRows
        const lane = newLane()
        const steps = [1, 2, 3].map((n) =>
          opened({ destination: lane, ...(n === 1 ? {} : { orderingKey: "line", line: "line" }), dueAt: inMillis(n) })
        )
        yield* write(...steps)
        const ids = steps.map(({ after }) => after.id)
        const first = yield* derived.ready(null, 1)
        const second = yield* derived.ready(first.next, 10)
        expect(yield* derived.ready(second.next, 10)).toEqual({ rows: [], next: null })
        // The third stands behind the second.
        expect([...first.rows, ...second.rows]).toEqual(
          steps.slice(0, 2).map((step) => {
            const { dueAt, version, epoch, attempt } = waitOf(step)
            return { messageId: step.after.id, lane, dueAt, version, epoch, attempt }
          })
        )
        const turns = yield* derived.messagesInLines(null, 1)
        expect([...turns, ...(yield* derived.messagesInLines(turns[0]!, 10))]).toEqual(ids.slice(1).toSorted())
        for (const step of steps) expect(yield* isPlaced(step.after.id, waiting(step))).toBe(true)
        expect(yield* isPlaced(ids[2]!, { ...waiting(steps[2]!), line: "other" })).toBe(false)
        expect(yield* isPlaced(ids[2]!, { type: "Out", dead: true })).toBe(false)
        expect(yield* derived.strays).toEqual([])
      })
    )

    test(
      "are made again where they are missing, in lines as they come, and once",
      Effect.gen(function* () {
        const derived = yield* DerivedRows
        const lane = newLane()
        const steps = [1, 2, 3].map((n) =>
          opened({ destination: lane, ...(n === 1 ? {} : { orderingKey: "line", line: "line" }) })
        )
        const held = opened()
        const rows = [
          ...steps.map((step) => ({ messageId: step.after.id, read: 1, place: waiting(step) })),
          { messageId: held.after.id, read: 1, place: { ...waiting(held), type: "UnderWay" as const } }
        ]
        yield* derived.restoreQueue(rows)
        yield* derived.restoreQueue(rows)
        const [plain, head, behind] = steps.map(({ after }) => after.id)
        expect((yield* derived.ready(null, 10)).rows.map(({ messageId }) => messageId).toSorted()).toEqual(
          [plain, head].toSorted()
        )
        expect(yield* isPlaced(behind!, waiting(steps[2]!))).toBe(true)
        expect(yield* isPlaced(held.after.id, { ...waiting(held), type: "UnderWay" })).toBe(true)
        const [taken] = yield* (yield* Queue).takeOver("w", Duration.seconds(30), 10)
        expect(taken!.messages.map(({ messageId, version }) => [messageId, version])).toEqual([[held.after.id, 1]])
      })
    )

    test(
      "bring back what is parked, but for a message that a batch holds, or that has later facts",
      Effect.gen(function* () {
        const derived = yield* DerivedRows
        const { park, find, list } = yield* Parked
        const orgId = newOrg()
        const steps = [1, 2, 3].map(() => opened({ orgId }))
        const [held, later, back] = steps.map(({ after }) => after.id)
        yield* (yield* EventStore).append([steps[0]!.entry])
        const claim = (yield* (yield* Queue).claim(asWorker("w")))!
        yield* (yield* EventStore).append([steps[1]!.entry, steps[2]!.entry])
        yield* park(new Map(steps.map(({ after }) => [streamOf(after.id), "failed"])))
        expect(yield* find(orgId, back!)).toMatchObject({ stream: streamOf(back!), reason: "failed" })
        expect(yield* find(newOrg(), back!)).toBeNull()
        const rows = steps.map((step) => ({
          ...{ messageId: step.after.id, place: waiting(step) },
          read: step.after.id === later ? 0 : 1
        }))
        expect(yield* derived.restoreQueue(rows)).toBe(1)
        const parked = (yield* list({ cursor: null, limit: 9 })).items.map(({ stream }) => stream)
        expect(parked).toEqual([held, later].map((id) => streamOf(id!)).toSorted())
        expect((yield* derived.ready(null, 10)).rows.map(({ messageId }) => messageId)).not.toContain(held)
        yield* (yield* Queue).release(claim.batch, [])
        expect(yield* derived.restoreQueue(rows)).toBe(1)
        expect((yield* derived.ready(null, 10)).rows.map(({ messageId }) => messageId)).toContain(held)
      })
    )

    test(
      "make a lane obey its circuit again, unless it knows better",
      Effect.gen(function* () {
        const derived = yield* DerivedRows
        const circuits = yield* Circuits
        const destination = newLane()
        const until = inMillis(60_000)
        const state = stateOf({ status: "OPEN", memory: { failures: 5, openings: 1, until, probe: null } }, 3)
        yield* derived.restoreCircuits([{ destination, state }])
        expect(yield* circuits.states([destination])).toEqual([state])
        yield* derived.restoreCircuits([{ destination, state: { ...initialState, generation: 2 } }])
        expect(yield* circuits.states([destination])).toEqual([state])
      })
    )
  })
}
