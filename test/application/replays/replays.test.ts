import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { entryOf } from "../../../src/application/entry.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { commandMessage, eraseMessage } from "../../../src/application/messages/commandMessage.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { replayOnce } from "../../../src/application/replays/replayDeadLetters.ts"
import {
  cancelReplay,
  listReplays,
  previewReplay,
  readReplay,
  requestReplay
} from "../../../src/application/replays/replays.ts"
import { MessageId, OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { initial, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import type { DeadLetterSelection } from "../../../src/domain/replay/facts.ts"
import { endings, queued, received, started } from "../../domain/message/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const acme = OrgId.make("acme")
const globex = OrgId.make("globex")
const layer = Layer.provideMerge(LogReader.layer, Layer.merge(MemoryPorts.layer, Fingerprints.layer))
const plain = { reason: null, idempotencyKey: null }
const all = { filter: {} }

const idOf = (n: number) => MessageId.make(`0198f0a2-3c52-7c43-8b1a-${String(n).padStart(12, "0")}`)

const store = Effect.fnUntraced(function* (from: number, to: number, history: ReadonlyArray<MessageFact>) {
  const at = yield* DateTime.now
  const entries = Array.from(
    { length: to - from + 1 },
    (_, n) => entryOf(idOf(from + n), initial, 0, history, at, { opening: { body: "{}", idempotency: null } }).entry
  )
  yield* (yield* EventStore).append(entries)
})

const project = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0) {}
})

/** So many dead letters of acme, and the views know them. */
const dead = Effect.fnUntraced(function* (count: number) {
  yield* store(1, count, endings.FAILED)
  yield* project
})

/** Works until nothing wants work any more, whatever the pauses. */
const work = Effect.gen(function* () {
  for (let idle = 0; idle < 3; ) {
    const worked = yield* replayOnce().pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(false)))
    idle = worked ? 0 : idle + 1
    yield* TestClock.adjust("11 seconds")
  }
})

/** How often each of these messages was replayed, and by which jobs. */
const replaysOf = Effect.fnUntraced(function* (count: number) {
  const streams = yield* (yield* EventStore).loadMany(Array.from({ length: count }, (_, n) => idOf(n + 1)))
  return [...streams.values()].map(({ facts }) =>
    facts.flatMap(({ fact }) => (fact.type === "MessageReplayed" ? [fact.replayId] : []))
  )
})

const test = (rule: string, body: Effect.Effect<void, unknown, Layer.Success<typeof layer>>) =>
  it.effect(rule, () => Effect.provide(body, layer))

describe("a preview", () => {
  test(
    "counts what a request would be for, and does nothing",
    Effect.gen(function* () {
      yield* store(1, 3, endings.FAILED)
      yield* store(4, 5, endings.DELIVERED)
      yield* store(6, 6, [queued({ orgId: globex }), ...endings.FAILED.slice(1)])
      yield* store(7, 7, [...endings.FAILED, received("delivered", { contradicts: true })])
      yield* project
      const preview = (selection: DeadLetterSelection) => previewReplay(acme, selection)
      expect(yield* preview(all)).toEqual({ matched: 4, contradicted: 1 })
      expect(yield* preview({ filter: { errorCode: "http_503" } })).toEqual({ matched: 0, contradicted: 0 })
      expect(yield* preview({ ids: [1, 1, 4, 6, 7, 99].map(idOf) })).toEqual({ matched: 2, contradicted: 1 })
      expect((yield* listReplays(acme, { cursor: null, limit: 10 })).items).toEqual([])
    })
  )
})

describe("a replay", () => {
  test(
    "gives each of its messages one new epoch, and says which job did",
    Effect.gen(function* () {
      yield* dead(1_200)
      const asked = yield* requestReplay(acme, all, { reason: "back", idempotencyKey: null })
      expect(asked).toMatchObject({ status: "RUNNING", matched: 1_200, replayed: 0, skipped: 0, endedAt: null })
      yield* work
      const done = yield* readReplay(acme, asked.id)
      expect(done).toMatchObject({ status: "COMPLETED", matched: 1_200, replayed: 1_200, skipped: 0 })
      expect(done.endedAt).not.toBeNull()
      expect(yield* replaysOf(1_200)).toEqual(Array.from({ length: 1_200 }, () => [asked.id]))
    })
  )

  test(
    "is for what was dead when it was asked for, not for what died later",
    Effect.gen(function* () {
      yield* dead(3)
      const asked = yield* requestReplay(acme, all, plain)
      yield* store(4, 6, endings.FAILED)
      yield* project
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ matched: 3, replayed: 3 })
      expect((yield* replaysOf(6)).map((jobs) => jobs.length)).toEqual([1, 1, 1, 0, 0, 0])
    })
  )

  test(
    "of listed messages is for those that are the org's and dead",
    Effect.gen(function* () {
      yield* dead(3)
      const asked = yield* requestReplay(acme, { ids: [3, 1, 99].map(idOf) }, plain)
      const other = yield* requestReplay(globex, { ids: [2].map(idOf) }, plain)
      expect(asked.matched).toBe(2)
      expect(other).toMatchObject({ matched: 0, status: "COMPLETED" })
      yield* work
      expect((yield* replaysOf(3)).map((jobs) => jobs.length)).toEqual([1, 0, 1])
    })
  )

  test(
    "asked for twice under one key is one replay; another request under that key is refused",
    Effect.gen(function* () {
      yield* dead(2)
      const keyed = { reason: null, idempotencyKey: "k" }
      const first = yield* requestReplay(acme, { filter: { channel: "webhook", errorCode: "http_410" } }, keyed)
      yield* work
      const again = yield* requestReplay(acme, { filter: { errorCode: "http_410", channel: "webhook" } }, keyed)
      expect(yield* readReplay(acme, first.id)).toEqual({ ...again, outcome: expect.anything() })
      expect(yield* Effect.flip(requestReplay(acme, all, keyed))).toMatchObject({ _tag: "ReplayKeyReused" })
      expect((yield* requestReplay(globex, all, keyed)).id).not.toBe(first.id)
      expect((yield* replaysOf(2)).map((jobs) => jobs.length)).toEqual([1, 1])
    })
  )

  test(
    "asked for twice without a key still gives each message one new epoch",
    Effect.gen(function* () {
      yield* dead(700)
      const one = yield* requestReplay(acme, all, plain)
      const two = yield* requestReplay(acme, all, plain)
      yield* work
      const results = [yield* readReplay(acme, one.id), yield* readReplay(acme, two.id)]
      expect(results.map(({ replayed, skipped }) => replayed + skipped)).toEqual([700, 700])
      expect(results[0]!.replayed + results[1]!.replayed).toBe(700)
      expect((yield* replaysOf(700)).every((jobs) => jobs.length === 1)).toBe(true)
    })
  )

  test(
    "skips what is not dead any more, and what has nothing left to send",
    Effect.gen(function* () {
      yield* dead(3)
      const asked = yield* requestReplay(acme, all, plain)
      yield* commandMessage(acme, idOf(1), "ReplayMessage", null)
      yield* eraseMessage(acme, idOf(2), null)
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 1, skipped: 2 })
      expect(yield* replaysOf(3)).toEqual([[null], [], [asked.id]])
    })
  )

  test(
    "does not mind a receipt that comes between",
    Effect.gen(function* () {
      yield* dead(2)
      const asked = yield* requestReplay(acme, all, plain)
      const inner = yield* EventStore
      let late = true
      const overtaken: EventStore["Service"] = {
        ...inner,
        append: Effect.fnUntraced(function* (entries) {
          if (late) {
            late = false
            const [first] = entries
            yield* inner.append([{ ...first!, facts: [received("sent")], queue: null }])
          }
          return yield* inner.append(entries)
        })
      }
      yield* work.pipe(Effect.provideService(EventStore, overtaken))
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 2, skipped: 0 })
      expect(yield* replaysOf(2)).toEqual([[asked.id], [asked.id]])
    })
  )

  test(
    "that is cancelled replays no further message, and can be cancelled again but not once it is done",
    Effect.gen(function* () {
      yield* dead(1_200)
      const asked = yield* requestReplay(acme, all, plain)
      yield* replayOnce()
      const cancelled = yield* cancelReplay(acme, asked.id, "enough")
      expect(cancelled).toMatchObject({ status: "CANCELLED", replayed: 500 })
      yield* work
      expect(yield* cancelReplay(acme, asked.id, null)).toEqual(cancelled)
      expect((yield* replaysOf(1_200)).filter((jobs) => jobs.length > 0)).toHaveLength(500)
      const other = yield* requestReplay(acme, { ids: [idOf(1_200)] }, plain)
      yield* work
      expect(yield* Effect.flip(cancelReplay(acme, other.id, null))).toMatchObject({
        _tag: "ReplayRejected",
        status: "COMPLETED"
      })
    })
  )

  test(
    "is not found by another org",
    Effect.gen(function* () {
      yield* dead(1)
      const { id } = yield* requestReplay(acme, all, plain)
      expect((yield* Effect.flip(readReplay(globex, id)))._tag).toBe("ReplayNotFound")
      expect((yield* Effect.flip(cancelReplay(globex, id, null)))._tag).toBe("ReplayNotFound")
      expect((yield* listReplays(globex, { cursor: null, limit: 10 })).items).toEqual([])
      expect((yield* listReplays(acme, { cursor: null, limit: 10 })).items).toHaveLength(1)
    })
  )

  test(
    "waits until most of what it queued before had an attempt, but not for ever",
    Effect.gen(function* () {
      yield* dead(1_500)
      const { id } = yield* requestReplay(acme, all, plain)
      const step = Effect.gen(function* () {
        yield* TestClock.adjust("1 second")
        yield* replayOnce()
        return (yield* readReplay(acme, id)).replayed
      })
      expect(yield* step).toBe(500)
      expect(yield* step).toBe(500)
      for (let n = 1; n <= 250; n++) {
        const { version, facts } = yield* (yield* EventStore).load(idOf(n))
        const message = replay(facts.map(({ fact }) => fact))
        const { entry } = entryOf(idOf(n), message, version, [started(1, 2)], yield* DateTime.now)
        yield* (yield* EventStore).append([entry])
      }
      expect(yield* step).toBe(1_000)
      expect(yield* step).toBe(1_000)
      yield* TestClock.adjust("1 minute")
      expect(yield* step).toBe(1_500)
    })
  )

  test(
    "looks seldom at a stretch that waits",
    Effect.gen(function* () {
      yield* dead(1_000)
      const { id } = yield* requestReplay(acme, all, plain)
      yield* replayOnce()
      const store = yield* EventStore
      let looks = 0
      const loadMany: typeof store.loadMany = (ids) => {
        looks += 1
        return store.loadMany(ids)
      }
      for (let tenths = 0; tenths < 500; tenths++) {
        yield* TestClock.adjust("100 millis")
        yield* Effect.provideService(replayOnce(), EventStore, { ...store, loadMany })
      }
      expect((yield* readReplay(acme, id)).replayed).toBe(500)
      expect(looks).toBeGreaterThan(10)
      expect(looks).toBeLessThan(30)
    })
  )
})

describe("a replay that is cut off", () => {
  const gone = () => Effect.fail(new StoreUnavailable({ cause: new Error("gone") }))

  test(
    "before its journal was begun happens all the same",
    Effect.gen(function* () {
      yield* dead(3)
      const id = ReplayId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a0f")
      yield* (yield* Replays).open({
        id,
        orgId: acme,
        selection: all,
        reason: null,
        requestedAt: yield* DateTime.now,
        set: { filter: {} },
        idempotency: null
      })
      yield* work
      expect(yield* readReplay(acme, id)).toMatchObject({ status: "COMPLETED", replayed: 3 })
    })
  )

  test(
    "before its dead letters were found finds them later, and no others",
    Effect.gen(function* () {
      yield* dead(3)
      const inner = yield* Replays
      const blind: Replays["Service"] = { ...inner, search: gone }
      const asked = yield* requestReplay(acme, all, plain).pipe(Effect.provideService(Replays, blind))
      expect(asked).toMatchObject({ status: "RUNNING", searching: true, matched: 0, replayed: 0 })
      expect(yield* readReplay(acme, asked.id)).toEqual({ ...asked, outcome: expect.anything() })
      expect((yield* listReplays(acme, { cursor: null, limit: 10 })).items).toEqual([asked])
      yield* TestClock.adjust("1 second")
      yield* store(4, 6, endings.FAILED)
      yield* project
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({
        ...{ status: "COMPLETED", searching: false, matched: 3, replayed: 3, skipped: 0 }
      })
      expect((yield* replaysOf(6)).map((jobs) => jobs.length)).toEqual([1, 1, 1, 0, 0, 0])
    })
  )

  test(
    "in its search by a store that hangs answers after a while, and is not lost",
    Effect.gen(function* () {
      yield* dead(1_500)
      const inner = yield* Replays
      let steps = 0
      const slow: Replays["Service"] = {
        ...inner,
        search: (job, limit) => (steps++ === 0 ? inner.search(job, limit) : Effect.never)
      }
      const request = yield* Effect.forkChild(
        requestReplay(acme, all, plain).pipe(Effect.provideService(Replays, slow))
      )
      yield* TestClock.adjust("3 seconds")
      const asked = yield* Fiber.join(request)
      expect(asked).toMatchObject({ status: "RUNNING", searching: true, matched: 1_000 })
      yield* work
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", matched: 1_500, replayed: 1_500 })
    })
  )

  test(
    "by a cancellation while it searches replays nothing, and finds nothing more",
    Effect.gen(function* () {
      yield* dead(1_500)
      const inner = yield* Replays
      const once: Replays["Service"] = {
        ...inner,
        search: (job, limit) => (job.matched > 0 ? gone() : Effect.andThen(inner.search(job, limit), gone()))
      }
      const { id } = yield* requestReplay(acme, all, plain).pipe(Effect.provideService(Replays, once))
      const cancelled = yield* cancelReplay(acme, id, null)
      expect(cancelled).toMatchObject({ status: "CANCELLED", searching: false, matched: 1_000, replayed: 0 })
      yield* work
      expect(yield* readReplay(acme, id)).toEqual({ ...cancelled, outcome: expect.anything() })
      expect((yield* replaysOf(1_500)).flat()).toEqual([])
    })
  )

  test(
    "between replaying and accounting for it gives nobody a second epoch, and counts each once",
    Effect.gen(function* () {
      yield* dead(1_200)
      const asked = yield* requestReplay(acme, all, plain)
      const inner = yield* Journals
      let cuts = 0
      const cut: Journals["Service"] = {
        ...inner,
        append: (journal, expected, facts, at, actor) =>
          facts[0]!.name.startsWith("ReplayAdvanced") && cuts++ % 2 === 0
            ? gone()
            : inner.append(journal, expected, facts, at, actor)
      }
      yield* work.pipe(Effect.provideService(Journals, cut))
      expect(cuts).toBeGreaterThanOrEqual(6)
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 1_200, skipped: 0 })
      expect((yield* replaysOf(1_200)).every((jobs) => jobs.length === 1)).toBe(true)
    })
  )

  test(
    "in the middle of a stretch goes on with the rest of it",
    Effect.gen(function* () {
      yield* dead(600)
      const asked = yield* requestReplay(acme, all, plain)
      const inner = yield* EventStore
      let cuts = 0
      const cut: EventStore["Service"] = {
        ...inner,
        append: (entries) =>
          cuts++ < 2
            ? Effect.andThen(inner.append(entries.slice(0, entries.length / 2)), gone())
            : inner.append(entries)
      }
      yield* work.pipe(Effect.provideService(EventStore, cut))
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 600, skipped: 0 })
      expect((yield* replaysOf(600)).every((jobs) => jobs.length === 1)).toBe(true)
    })
  )

  test(
    "and was taken up by two processes at once is still exact",
    Effect.gen(function* () {
      yield* dead(1_200)
      const asked = yield* requestReplay(acme, all, plain)
      const inner = yield* Replays
      // As if every lease had run out the moment it was given.
      const leaseless: Replays["Service"] = { ...inner, take: () => inner.take(Duration.zero) }
      const both = Effect.all([replayOnce(), replayOnce(), replayOnce()], { concurrency: "unbounded" })
      for (let round = 0; round < 5; round++) {
        yield* both.pipe(Effect.provideService(Replays, leaseless))
        yield* TestClock.adjust("61 seconds")
      }
      expect(yield* readReplay(acme, asked.id)).toMatchObject({ status: "COMPLETED", replayed: 1_200, skipped: 0 })
      expect((yield* replaysOf(1_200)).every((jobs) => jobs.length === 1)).toBe(true)
    })
  )
})
