/** What every adapter of `MessageViews` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { EventStore, type Position } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type Listed, type MessageFilter, MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { type MessageView, viewOf } from "../../../src/domain/message/view.ts"
import type { DeadLetterFilter } from "../../../src/domain/replay/facts.ts"
import { ended, projected } from "../replays/deadLetterSamples.ts"
import {
  delivered,
  inMillis,
  newLane,
  newOrg,
  next,
  now,
  opened,
  type Sample,
  type Step,
  type StorePorts,
  settled,
  started,
  unreachable
} from "../sample.ts"
import { refused, write } from "../written.ts"

const currentView = (id: MessageId) =>
  Effect.map(
    Effect.flatMap(EventStore, (store) => store.load(id)),
    ({ facts }) => viewOf(id, facts)!
  )

/** The position of the last fact, once the store shows `count` of them. */
const positionOf = (count: number): Effect.Effect<Position, StoreUnavailable, EventStore> =>
  Effect.gen(function* () {
    const store = yield* EventStore
    for (;;) {
      const facts = yield* store.readAll(null, 1_000)
      if (facts.length >= count) return facts[count - 1]!.position
      yield* Effect.sleep("5 millis")
    }
  })

/** Of the generation that is live from the start. */
const step = (from: Position | null, to: Position) => ({ generation: 1, from, to, facts: 1 })

const livePosition = Effect.map(
  Effect.flatMap(Projections, (projections) => projections.runs),
  (runs) => runs.find((run) => run.name === "messages" && run.live)!.position
)

export const messageViewsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const list = (orgId: OrgId, filter: MessageFilter = {}) =>
    Effect.map(
      Effect.flatMap(MessageViews, (views) => views.list(orgId, filter, { cursor: null, limit: 100 })),
      (page) => page.items
    )

  const listedAs = ({ id, version }: MessageView): Listed => ({ id, version })

  describe(`${name} message views`, () => {
    test(
      "are those of an org whatever it is called",
      Effect.gen(function* () {
        const orgId = OrgId.make("NULL")
        const queued = opened({ orgId })
        yield* write(queued)
        yield* projected([queued.after])
        expect((yield* list(orgId)).map(({ id }) => id)).toEqual([queued.after.id])
      })
    )

    test(
      "are found by key, by metadata, by error, by attempts and by their last change, of their own org only",
      Effect.gen(function* () {
        const [orgId, other] = [newOrg(), newOrg()]
        const metadata = { order: "4711", "a=b": "\u001f" }
        const idempotency = (org: OrgId) => ({ orgId: org, key: "k-1", requestHash: "h" })
        const mine = opened({ orgId, metadata, idempotency: idempotency(orgId) })
        const theirs = opened({ orgId: other, metadata, idempotency: idempotency(other) })
        const plain = opened({ orgId, metadata: null })
        yield* write(mine)
        yield* write(theirs)
        yield* write(plain)
        const dead = yield* ended(refused(), now(), { orgId, metadata: { order: "4712" } })
        // Two attempts failed and it waits for the third: it is no dead letter.
        const retried = opened({ orgId, metadata: null })
        const first = started(retried.after)
        const second = settled(first.after, unreachable())
        const third = started(second.after)
        const waiting = settled(third.after, unreachable())
        yield* write(retried, first, second, third, waiting)
        const views = yield* projected([mine.after, theirs.after, plain.after, dead, waiting.after])
        const ids = (filter: MessageFilter) => Effect.map(list(orgId, filter), (items) => items.map(({ id }) => id))
        expect(yield* ids({ idempotencyKey: "k-1" })).toEqual([mine.after.id])
        expect(yield* ids({ idempotencyKey: "k-2" })).toEqual([])
        expect(yield* ids({ metadata: { name: "order", value: "4711" } })).toEqual([mine.after.id])
        expect(yield* ids({ metadata: { name: "a=b", value: "\u001f" } })).toEqual([mine.after.id])
        expect(yield* ids({ metadata: { name: "order", value: "471" } })).toEqual([])
        const { lastError } = yield* currentView(dead.id)
        expect(yield* ids({ errorCode: lastError!.code })).toEqual([dead.id])
        expect(yield* ids({ errorCode: "another" })).toEqual([])
        expect(yield* ids({ attempts: 1, status: "FAILED" })).toEqual([dead.id])
        expect(yield* ids({ attempts: 2, status: "FAILED" })).toEqual([])
        expect(yield* ids({ attempts: 1, status: "QUEUED" })).toEqual([retried.after.id])
        expect(views.at(-1)!.lastError).not.toBeNull()
        expect(yield* ids({ errorCode: views.at(-1)!.lastError!.code })).toEqual([])
        const { updatedAt } = views.find(({ id }) => id === dead.id)!
        expect(yield* ids({ updatedAfter: updatedAt, status: "FAILED" })).toEqual([])
        expect(yield* ids({ updatedAfter: inMillis(60_000), status: "FAILED" })).toEqual([])
        expect(yield* ids({ updatedAfter: inMillis(-60_000), status: "FAILED" })).toEqual([dead.id])
      })
    )

    test(
      "of all orgs are those of each in one order, on one page each, by every filter",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgs = [newOrg(), newOrg(), newOrg()]
        const metadata = { order: "4711" }
        const samples: Array<Sample> = []
        for (let n = 0; n < 9; n++) {
          const orgId = orgs[n % 3]!
          const wishes = { orgId, acceptedAt: inMillis(n * 1_000 - 60_000), dossierId: n < 6 ? "d-1" : "d-2" }
          if (n > 5 || n === 0) {
            samples.push(yield* ended(n === 8 ? delivered : refused(), inMillis(-n * 1_000), wishes))
            continue
          }
          const idempotency = n < 3 ? { orgId, key: "k", requestHash: "h" } : null
          const queued = opened({ ...wishes, metadata: n < 4 ? metadata : null, ...(idempotency && { idempotency }) })
          yield* write(queued)
          samples.push(queued.after)
        }
        yield* projected(samples)
        const known = yield* Effect.forEach(samples, ({ id }) => currentView(id))
        /** These, the latest first. */
        const of = (...numbers: ReadonlyArray<number>) =>
          numbers
            .map((n) => known[n]!)
            .toSorted((a, b) => DateTime.Order(b.createdAt, a.createdAt) || (a.id > b.id ? -1 : 1))
            .map(({ id }) => id)
        const paged = Effect.fnUntraced(function* (filter: MessageFilter, limit: number) {
          const found: Array<MessageId> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof views.list>> = yield* views.list(null, filter, {
              cursor,
              limit
            })
            found.push(...page.items.map(({ id }) => id))
            cursor = page.nextCursor
          } while (cursor !== null)
          return found
        })
        for (const limit of [1, 2, 4, 100]) {
          expect(yield* paged({}, limit)).toEqual(of(0, 1, 2, 3, 4, 5, 6, 7, 8))
          expect(yield* paged({ status: "QUEUED" }, limit)).toEqual(of(5, 4, 3, 2, 1))
        }
        expect(yield* paged({ dossierId: "d-2" }, 2)).toEqual(of(8, 7, 6))
        expect(yield* paged({ metadata: { name: "order", value: "4711" } }, 2)).toEqual(of(3, 2, 1))
        expect(yield* paged({ idempotencyKey: "k" }, 2)).toEqual(of(2, 1))
        expect(yield* paged({ idempotencyKey: "none" }, 2)).toEqual([])
        expect(yield* paged({ errorCode: known[0]!.lastError!.code }, 2)).toEqual(of(7, 6, 0))
        const dead = yield* views.deadLetters(null, {}, { cursor: null, limit: 2 })
        const rest = yield* views.deadLetters(null, {}, { cursor: dead.nextCursor, limit: 2 })
        // The one that ended last comes first.
        const ids = [...dead.items, ...rest.items].map(({ id }) => id)
        expect([ids, rest.nextCursor]).toEqual([[0, 6, 7].map((n) => known[n]!.id), null])
        const { byStatus } = yield* views.stats(null)
        expect(byStatus).toMatchObject({ QUEUED: 5, FAILED: 3, DELIVERED: 1 })
      })
    )

    test(
      "starts at no position and counts nothing",
      Effect.gen(function* () {
        const views = yield* MessageViews
        expect(yield* livePosition).toBeNull()
        expect(yield* views.stats(newOrg())).toEqual({
          byStatus: {
            QUEUED: 0,
            SENDING: 0,
            SENT: 0,
            DELIVERED: 0,
            FAILED: 0,
            DEAD_LETTER: 0,
            CANCELLED: 0,
            EXPIRED: 0
          },
          byChannel: {},
          oldestDueAt: null
        })
      })
    )

    test(
      "lists each message at the version that was folded, and remembers how far it has read",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgId = newOrg()
        const queued = opened({ orgId, dossierId: "d-1", expiresAt: inMillis(1_000_000), metadata: { a: "ž" } })
        const start = started(queued.after)
        yield* write(queued, start, settled(start.after, unreachable()))
        const view = yield* currentView(queued.after.id)
        const position = yield* positionOf(3)
        expect(yield* views.project(step(null, position), [view])).toBe(true)
        expect(yield* list(orgId)).toEqual([listedAs(view)])
        expect(yield* livePosition).toBe(position)
      })
    )

    test(
      "lets one of two projectors on the same position win",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgId = newOrg()
        const steps = [opened({ orgId }), opened({ orgId })]
        yield* write(...steps)
        const [one, two] = [yield* currentView(steps[0]!.after.id), yield* currentView(steps[1]!.after.id)]
        const [first, second] = [yield* positionOf(1), yield* positionOf(2)]
        const won = yield* Effect.all(
          [views.project(step(null, first), [one]), views.project(step(null, second), [two])],
          {
            concurrency: "unbounded"
          }
        )
        expect(won.toSorted()).toEqual([false, true])
        expect(yield* list(orgId)).toEqual([listedAs(won[0] ? one : two)])
        expect(yield* livePosition).toBe(won[0] ? first : second)
      })
    )

    test(
      "writes nothing when the position has moved on",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgId = newOrg()
        const steps = [opened({ orgId }), opened({ orgId })]
        yield* write(...steps)
        const [first, second] = [yield* positionOf(1), yield* positionOf(2)]
        expect(yield* views.project(step(null, first), [yield* currentView(steps[0]!.after.id)])).toBe(true)
        expect(yield* views.project(step(null, second), [yield* currentView(steps[1]!.after.id)])).toBe(false)
        expect(yield* views.project(step(second, second), [yield* currentView(steps[1]!.after.id)])).toBe(false)
        expect(yield* list(orgId)).toHaveLength(1)
        expect(yield* livePosition).toBe(first)
      })
    )

    test(
      "never lets an older view replace a newer one, and still moves on",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgId = newOrg()
        const queued = opened({ orgId })
        yield* write(queued)
        const older = yield* currentView(queued.after.id)
        yield* write(next(queued.after, { type: "CancelMessage", reason: null }))
        const newer = yield* currentView(queued.after.id)
        const [first, second] = [yield* positionOf(1), yield* positionOf(2)]
        yield* views.project(step(null, first), [newer])
        expect(yield* views.project(step(first, second), [older])).toBe(true)
        expect(yield* list(orgId)).toEqual([listedAs(newer)])
        expect(yield* livePosition).toBe(second)
      })
    )

    describe("a list", () => {
      /** Seven messages of one org, each accepted a little later, and one of another org. */
      const populated = Effect.gen(function* () {
        const orgId = newOrg()
        const steps: Array<Step> = []
        for (let i = 0; i < 7; i++) {
          const step = opened({
            orgId,
            to: i === 2 ? "else" : "sample",
            eventType: i === 3 ? null : `type-${i % 2}`,
            dossierId: i < 2 ? "dossier" : null,
            correlationId: i === 5 ? "c-5" : null,
            channel: i === 6 ? "http" : "webhook",
            destination: newLane()
          })
          steps.push({ ...step, entry: { ...step.entry, at: inMillis(i * 1_000 - 60_000) } })
        }
        const cancelled = next(steps[4]!.after, { type: "CancelMessage", reason: null })
        const foreign = opened({ to: "sample" })
        yield* write(...steps, cancelled, foreign)
        const all: Array<MessageView> = []
        for (const { after } of [...steps, foreign]) all.push(yield* currentView(after.id))
        yield* (yield* MessageViews).project(step(null, yield* positionOf(9)), all)
        return { orgId, mine: all.slice(0, 7) }
      })

      test(
        "is newest first, and each message is on exactly one page",
        Effect.gen(function* () {
          const views = yield* MessageViews
          const { orgId, mine } = yield* populated
          const seen: Array<Listed> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof views.list>> = yield* views.list(
              orgId,
              {},
              { cursor, limit: 3 }
            )
            expect(page.items.length).toBeLessThanOrEqual(3)
            seen.push(...page.items)
            cursor = page.nextCursor
          } while (cursor !== null)
          expect(seen).toEqual(mine.toReversed().map(listedAs))
        })
      )

      test(
        "keeps its place when messages of the same millisecond fall on two pages",
        Effect.gen(function* () {
          const views = yield* MessageViews
          const orgId = newOrg()
          const at = inMillis(0)
          const steps = Array.from({ length: 5 }, () => {
            const step = opened({ orgId })
            return { ...step, entry: { ...step.entry, at } }
          })
          yield* write(...steps)
          const all = yield* Effect.forEach(steps, ({ after }) => currentView(after.id))
          yield* views.project(step(null, yield* positionOf(5)), all)
          const seen: Array<string> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof views.list>> = yield* views.list(
              orgId,
              {},
              { cursor, limit: 2 }
            )
            seen.push(...page.items.map((view) => view.id))
            cursor = page.nextCursor
          } while (cursor !== null)
          expect(seen.toSorted()).toEqual(all.map((view) => view.id).toSorted())
        })
      )

      test(
        "keeps to its filter and its org",
        Effect.gen(function* () {
          const { orgId, mine } = yield* populated
          const matching = (filter: MessageFilter) =>
            Effect.map(list(orgId, filter), (views) => views.map((view) => mine.findIndex(({ id }) => id === view.id)))
          expect(yield* matching({ status: "CANCELLED" })).toEqual([4])
          expect(yield* matching({ channel: "http" })).toEqual([6])
          expect(yield* matching({ to: "else" })).toEqual([2])
          expect(yield* matching({ eventType: "type-1" })).toEqual([5, 1])
          expect(yield* matching({ dossierId: "dossier" })).toEqual([1, 0])
          expect(yield* matching({ correlationId: "c-5" })).toEqual([5])
          expect(yield* matching({ dossierId: "dossier", eventType: "type-1" })).toEqual([1])
          const between = {
            createdAfter: DateTime.add(mine[2]!.createdAt, { milliseconds: 500 }),
            createdBefore: DateTime.add(mine[4]!.createdAt, { milliseconds: 500 })
          }
          expect(yield* matching(between)).toEqual([4, 3])
          expect(yield* matching({ correlationId: "unknown" })).toEqual([])
        })
      )
    })

    describe("the dead letters", () => {
      /** Five that died a second apart, one of another org, one that was delivered and one that was replayed. */
      const died = Effect.gen(function* () {
        const orgId = newOrg()
        const dead: Array<Sample> = []
        for (let i = 0; i < 5; i++) {
          const wishes = {
            orgId,
            to: i === 1 ? "else" : "sample",
            channel: i === 2 ? ("http" as const) : ("webhook" as const)
          }
          dead.push(yield* ended(refused(i === 3 ? "http_410" : "http_400"), inMillis(i * 1_000 - 60_000), wishes))
        }
        const others = [
          yield* ended(refused(), inMillis(-60_000)),
          yield* ended(delivered, inMillis(-60_000), { orgId })
        ]
        const revived = yield* ended(refused(), inMillis(-60_000), { orgId })
        yield* projected([...dead, ...others, revived])
        const again = next(revived, { type: "ReplayMessage", now: now(), reason: null })
        const receipt = next(dead[0]!, {
          type: "RecordReceipt",
          receipt: "delivered",
          providerMessageId: null,
          epoch: null,
          attempt: null,
          reportedAt: now(),
          error: null
        })
        yield* write(again, receipt)
        const known = yield* projected([...dead, revived])
        return { orgId, dead: known.slice(0, 5) }
      })
      const listed = (orgId: OrgId, filter: DeadLetterFilter) =>
        Effect.map(
          Effect.flatMap(MessageViews, (views) => views.deadLetters(orgId, filter, { cursor: null, limit: 100 })),
          (page) => page.items
        )

      test(
        "are those that ended badly and were not replayed, the last to die first, each on exactly one page",
        Effect.gen(function* () {
          const views = yield* MessageViews
          const { orgId, dead } = yield* died
          const seen: Array<Listed> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof views.deadLetters>> = yield* views.deadLetters(
              orgId,
              {},
              { cursor, limit: 2 }
            )
            expect(page.items.length).toBeLessThanOrEqual(2)
            seen.push(...page.items)
            cursor = page.nextCursor
          } while (cursor !== null)
          expect(seen).toEqual(dead.toReversed().map(listedAs))
          expect(yield* views.countDeadLetters(orgId, {})).toEqual({ matched: 5, contradicted: 1 })
        })
      )

      test(
        "keep to their filter and their org, listed and counted",
        Effect.gen(function* () {
          const views = yield* MessageViews
          const { orgId, dead } = yield* died
          const matching = Effect.fnUntraced(function* (filter: DeadLetterFilter) {
            const found = (yield* listed(orgId, filter)).map(({ id }) => dead.findIndex((view) => view.id === id))
            expect((yield* views.countDeadLetters(orgId, filter)).matched).toBe(found.length)
            return found
          })
          expect(yield* matching({ to: "else" })).toEqual([1])
          expect(yield* matching({ channel: "http" })).toEqual([2])
          expect(yield* matching({ errorCode: "http_410" })).toEqual([3])
          expect(yield* matching({ errorCode: "http_400", to: "sample" })).toEqual([4, 2, 0])
          expect(yield* matching({ after: dead[1]!.endedAt!, before: dead[4]!.endedAt! })).toEqual([3, 2])
          expect(yield* matching({ errorCode: "unknown" })).toEqual([])
          expect(yield* listed(newOrg(), {})).toEqual([])
        })
      )
    })

    test(
      "name what waits and is over, of all orgs, the longest over first, page by page",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const aged = { retry: { strategy: "fixed", baseMs: 1_000, ageMaxMs: 20_000 } } as const
        const [expired, old, later, endless, under] = [
          opened({ orgId: newOrg(), dueAt: inMillis(-60_000), expiresAt: inMillis(-30_000) }),
          opened({ orgId: newOrg(), dueAt: inMillis(-60_000), acceptedAt: inMillis(-60_000), ...aged }),
          opened({ dueAt: inMillis(0), expiresAt: inMillis(60_000) }),
          opened({ dueAt: inMillis(-60_000) }),
          opened({ dueAt: inMillis(-60_000), expiresAt: inMillis(-40_000) })
        ]
        const begun = started(under.after)
        yield* write(expired, old, later, endless, under, begun)
        yield* projected([expired, old, later, endless, begun].map(({ after }) => after))
        const pages = Effect.fnUntraced(function* (limit: number) {
          const found: Array<MessageId> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof views.ending>> = yield* views.ending(inMillis(0), {
              cursor,
              limit
            })
            found.push(...page.items)
            cursor = page.nextCursor
          } while (cursor !== null)
          return found
        })
        const known = new Set([expired, old, later, endless, under].map(({ after }) => after.id))
        for (const limit of [1, 2, 100]) {
          const found = (yield* pages(limit)).filter((id) => known.has(id))
          expect(found).toEqual([old.after.id, expired.after.id])
        }
      })
    )

    test(
      "counts by status, per channel too, and says since when the longest wait is late",
      Effect.gen(function* () {
        const views = yield* MessageViews
        const orgId = newOrg()
        const [late, later, notYet] = [
          opened({ orgId, dueAt: inMillis(-60_000) }),
          opened({ orgId, dueAt: inMillis(-30_000) }),
          opened({ orgId, channel: "http", dueAt: inMillis(3_600_000) })
        ]
        const sending = opened({ orgId, dueAt: inMillis(-90_000) })
        yield* write(sending)
        yield* (yield* Queue).claim({
          worker: "w",
          limit: 1,
          perLane: 1,
          room: new Map(),
          fullOrgs: new Set<never>(),
          lease: Duration.minutes(1)
        })
        const steps = [late, later, notYet, sending, started(sending.after), opened({ dueAt: inMillis(-120_000) })]
        yield* write(...steps.filter((step) => step !== sending))
        const opening = [late, later, notYet, sending, steps[5]!]
        const all = yield* Effect.forEach(opening, ({ after }) => currentView(after.id))
        yield* views.project(step(null, yield* positionOf(6)), all)
        const stats = yield* views.stats(orgId)
        expect(stats.byStatus).toMatchObject({ QUEUED: 3, SENDING: 1, DELIVERED: 0 })
        expect(Object.keys(stats.byChannel)).toEqual(["http", "webhook"])
        expect(stats.byChannel.http).toEqual({ ...stats.byStatus, QUEUED: 1, SENDING: 0 })
        expect(stats.byChannel.webhook).toMatchObject({ QUEUED: 2, SENDING: 1, DELIVERED: 0 })
        expect(stats.oldestDueAt).toEqual(late.after.message.progress.dueAt)
        expect((yield* views.stats(newOrg())).oldestDueAt).toBeNull()
      })
    )
  })
}
