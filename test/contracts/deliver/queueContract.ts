/**
 * What every queue promises, together with the event store that fills it. Call it once per adapter, with a
 * layer that gives each test an empty store. Leases here last 150 ms and are given 400 ms to run out.
 */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import {
  type AbandonedMessage,
  type BatchId,
  CLAIMED_BODY_MAX,
  type ClaimedMessage,
  Queue
} from "../../../src/application/ports/Queue.ts"
import { type DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../destinations/samples.ts"
import {
  delivered,
  inMillis,
  newLane,
  next,
  opened,
  type Sample,
  type StorePorts,
  settled,
  started,
  unreachable
} from "../sample.ts"
import { put } from "../written.ts"
import { asWorker, claimAll, minute } from "./claims.ts"

const anHour = 3_600_000
/** Long enough to find the lane deferred on a machine that is busy with other things. */
const DEFERRAL = Duration.seconds(3)

const ids = (samples: ReadonlyArray<{ readonly id: string } | { readonly messageId: string }>) =>
  samples.map((sample) => ("id" in sample ? sample.id : sample.messageId))

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([duration]) => Duration.toMillis(duration))

/** What a claim hands out is enough to hand it back. */
const handBack = (message: ClaimedMessage): AbandonedMessage => message

export const queueContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} queue`, () => {
    describe("a claim of one message", () => {
      const later = { dueAt: inMillis(anHour) }
      const waiting = ({ id, lane, message }: Sample) => ({ messageId: id, lane, dueAt: message.progress.dueAt! })

      test(
        "takes it before its time, and once; nobody else gets it, and it goes back as it was",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          const [sample, other] = yield* put([
            { destination: lane, ...later },
            { destination: lane, ...later }
          ])
          const both = yield* Effect.all(
            [queue.claimOne("a", waiting(sample!), minute), queue.claimOne("b", waiting(sample!), minute)],
            { concurrency: 2 }
          )
          expect(both.filter((batch) => batch !== null)).toHaveLength(1)
          const batch = both.find((each) => each !== null)!
          expect(yield* queue.claimOne("c", { ...waiting(other!), dueAt: inMillis(1) }, minute)).toBeNull()
          expect((yield* queue.renew([batch], minute)).has(batch)).toBe(true)
          yield* queue.release(batch, [{ ...waiting(sample!), version: 1, epoch: 1, attempt: 0 }])
          expect(yield* queue.claimOne("d", waiting(sample!), minute)).not.toBeNull()
        })
      )

      test(
        "lets the fact that hurries it put it back under its new time",
        Effect.gen(function* () {
          const queue = yield* Queue
          const store = yield* EventStore
          const [sample] = yield* put([later])
          const batch = (yield* queue.claimOne("a", waiting(sample!), minute))!
          const hurried = next(sample!, { type: "HurryMessage", now: inMillis(-5) }, { fence: batch })
          expect(yield* store.append([hurried.entry])).toMatchObject([{ type: "Appended" }])
          yield* queue.release(batch, [])
          const claim = yield* queue.claim(asWorker("w"))
          expect(claim!.messages).toMatchObject([{ messageId: sample!.id, version: 2, epoch: 1, attempt: 0 }])
          yield* queue.release(claim!.batch, [])
          expect(yield* queue.nextDueAt).toBeNull()
        })
      )

      test(
        "is a lease like any other: when it has run out, somebody takes it over",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [sample] = yield* put([later])
          yield* queue.claimOne("a", waiting(sample!), Duration.millis(50))
          yield* Effect.sleep("400 millis")
          const [taken] = yield* queue.takeOver("w", minute, 10)
          expect(ids(taken!.messages)).toEqual([sample!.id])
        })
      )
    })

    describe("a claim", () => {
      test(
        "of an empty queue is null",
        Effect.gen(function* () {
          const queue = yield* Queue
          expect(yield* queue.claim(asWorker("w"))).toBeNull()
          expect(yield* queue.nextDueAt).toBeNull()
        })
      )

      test(
        "brings all that a worker needs to start",
        Effect.gen(function* () {
          const queue = yield* Queue
          const step = opened({ body: '{"price":1.10,"text":"ünïcode 🚚"}', dueAt: inMillis(-5_000) })
          yield* (yield* EventStore).append([step.entry])
          const claim = yield* queue.claim(asWorker("w"))
          expect(claim!.messages).toMatchObject([
            {
              messageId: step.after.id,
              lane: step.after.lane,
              dueAt: step.after.message.progress.dueAt,
              version: 1,
              epoch: 1,
              attempt: 0,
              queued: step.entry.facts[0],
              body: '{"price":1.10,"text":"ünïcode 🚚"}'
            }
          ])
        })
      )

      test(
        "of a retry says which version, epoch and attempt the message has reached",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          const claim = yield* queue.claim(asWorker("w"))
          const start = started(sample!, { fence: claim!.batch })
          const failed = settled(start.after, unreachable(), { fence: claim!.batch })
          yield* store.append([start.entry])
          yield* store.append([failed.entry])
          yield* queue.release(claim!.batch, [])
          yield* Effect.sleep("20 millis")
          const again = yield* queue.claim(asWorker("w"))
          expect(again!.messages).toMatchObject([{ messageId: sample!.id, version: 3, epoch: 1, attempt: 1 }])
          expect(again!.batch).not.toBe(claim!.batch)
        })
      )

      test(
        "hands out a message whose body was erased, with null",
        Effect.gen(function* () {
          const [sample] = yield* put([{}])
          yield* (yield* Bodies).erase(sample!.id)
          const claim = yield* (yield* Queue).claim(asWorker("w"))
          expect(claim!.messages).toMatchObject([{ messageId: sample!.id, body: null }])
        })
      )

      test(
        "gives a lane in due order, whatever the order of arrival",
        Effect.gen(function* () {
          const lane = newLane()
          const wishes = [-300, -500, -100, -400, -200].map((ago) => ({ destination: lane, dueAt: inMillis(ago) }))
          const samples = yield* put(wishes)
          const [third, first, fifth, second, fourth] = ids(samples)
          expect(yield* claimAll).toEqual([first, second, third, fourth, fifth])
        })
      )

      test(
        "leaves what is due later",
        Effect.gen(function* () {
          const lane = newLane()
          const [later, due] = yield* put([
            { destination: lane, dueAt: inMillis(anHour) },
            { destination: lane, dueAt: inMillis(-1) }
          ])
          const queue = yield* Queue
          expect(yield* claimAll).toEqual([due!.id])
          expect(yield* claimAll).toEqual([])
          expect(yield* queue.nextDueAt).toEqual(later!.message.progress.dueAt)
        })
      )

      test(
        "hands out what was put off once its time has come",
        Effect.gen(function* () {
          const [sample] = yield* put([{ dueAt: inMillis(3_000) }])
          expect(yield* claimAll).toEqual([])
          yield* Effect.sleep("3100 millis")
          expect(yield* claimAll).toEqual([sample!.id])
        })
      )

      test(
        "sees at once what was appended right after it found nothing",
        Effect.gen(function* () {
          const lane = newLane()
          for (let round = 0; round < 20; round++) {
            expect(yield* claimAll).toEqual([])
            const samples = yield* put([{ destination: lane }])
            expect(yield* claimAll).toEqual(ids(samples))
          }
        })
      )

      test(
        "finds a lane again that was emptied, left waiting for the future and then filled",
        Effect.gen(function* () {
          const lane = newLane()
          const first = yield* put([{ destination: lane }])
          expect(yield* claimAll).toEqual(ids(first))
          yield* put([{ destination: lane, dueAt: inMillis(anHour) }])
          expect(yield* claimAll).toEqual([])
          const second = yield* put([{ destination: lane }])
          expect(yield* claimAll).toEqual(ids(second))
        })
      )

      test(
        "leaves a body out that is too large to be held in advance, by its bytes",
        Effect.gen(function* () {
          const ofBytes = (bytes: number) => `"ü${"x".repeat(bytes - 4)}"`
          const steps = [CLAIMED_BODY_MAX, CLAIMED_BODY_MAX + 1].map((bytes) => opened({ body: ofBytes(bytes) }))
          yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
          const { messages } = (yield* (yield* Queue).claim(asWorker("w")))!
          const [whole, large] = steps.map(({ after }) => messages.find(({ messageId }) => messageId === after.id)!)
          expect(whole).toMatchObject({ body: ofBytes(CLAIMED_BODY_MAX), isBodyLarge: false })
          expect(large).toMatchObject({ body: null, isBodyLarge: true })
          expect(yield* (yield* Bodies).load(large!.messageId)).toBe(ofBytes(CLAIMED_BODY_MAX + 1))
        })
      )

      test(
        "takes no more than its limit, and the next one takes the rest",
        Effect.gen(function* () {
          const queue = yield* Queue
          const samples = yield* put(Array.from({ length: 10 }, () => ({})))
          const first = yield* queue.claim({ ...asWorker("w"), limit: 4 })
          const second = yield* queue.claim({ ...asWorker("w"), limit: 400 })
          expect(first!.messages).toHaveLength(4)
          expect(ids([...first!.messages, ...second!.messages]).toSorted()).toEqual(ids(samples).toSorted())
        })
      )

      test(
        "takes no more from a lane than it has room for, or than perLane where no room is named",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [many, roomy, full] = [newLane(), newLane(), newLane()]
          yield* put([many, roomy, full].flatMap((destination) => Array.from({ length: 5 }, () => ({ destination }))))
          const room = new Map([
            [roomy!, 2],
            [full!, 0]
          ])
          const claim = yield* queue.claim({ ...asWorker("w"), perLane: 3, room })
          const count = (lane: string) => claim!.messages.filter((message) => message.lane === lane).length
          expect([count(many!), count(roomy!), count(full!)]).toEqual([3, 2, 0])
          const onlyFull = new Map([many!, roomy!, full!].map((lane) => [lane, 0]))
          expect(yield* queue.claim({ ...asWorker("w"), room: onlyFull })).toBeNull()
          const larger = new Map([[full!, 50]])
          const rest = yield* queue.claim({ ...asWorker("w"), perLane: 3, room: larger })
          expect(rest!.messages.filter((message) => message.lane === full)).toHaveLength(5)
        })
      )

      test(
        "takes from a full org only what its named lanes have room for, whatever orgs are called",
        Effect.gen(function* () {
          const queue = yield* Queue
          const orgs = ["null", "NULL", "other"].map((name) => OrgId.make(name))
          const made = yield* Effect.forEach(orgs, (org) => makeEndpoint(org))
          yield* put(made.map(({ id, orgId }) => ({ orgId, destination: id })))
          const claimed = Effect.fnUntraced(function* (
            full: ReadonlyArray<OrgId>,
            room: ReadonlyMap<DestinationId, number>
          ) {
            const claim = yield* queue.claim({ ...asWorker("w"), room, fullOrgs: new Set(full) })
            if (claim !== null) yield* queue.release(claim.batch, claim.messages.map(handBack))
            return new Set(claim?.messages.map(({ queued }) => queued.orgId))
          })
          for (const org of orgs)
            expect(yield* claimed([org], new Map())).toEqual(new Set(orgs.filter((one) => one !== org)))
          expect(yield* claimed(orgs, new Map([[made[0]!.id, 1]]))).toEqual(new Set([orgs[0]]))
          expect(yield* claimed(orgs, new Map())).toEqual(new Set())
        })
      )

      test(
        "visits lanes in turns, so a lane with a long line does not hold up the others",
        Effect.gen(function* () {
          const queue = yield* Queue
          const long = newLane()
          const lanes = Array.from({ length: 6 }, newLane)
          yield* put(Array.from({ length: 60 }, () => ({ destination: long, dueAt: inMillis(-60_000) })))
          yield* put(lanes.map((destination) => ({ destination })))
          const visited: Array<string> = []
          for (let turn = 0; turn < 7; turn++) {
            const claim = yield* queue.claim({ ...asWorker("w"), limit: 5, perLane: 5 })
            visited.push(...claim!.messages.map((message) => message.lane))
          }
          for (const lane of lanes) expect(visited).toContain(lane)
        })
      )

      test(
        "never hands out what another claim holds, however many ask at once",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lanes = Array.from({ length: 5 }, newLane)
          const samples = yield* put(Array.from({ length: 200 }, (_, i) => ({ destination: lanes[i % 5]! })))
          const worker = (n: number) =>
            Effect.gen(function* () {
              const got: Array<string> = []
              // Racing claims may find a lane locked and come back empty: only an empty queue ends the work.
              while ((yield* queue.nextDueAt) !== null) {
                const claim = yield* queue.claim({ ...asWorker(`w${n}`), limit: 7, perLane: 3 })
                if (claim !== null) got.push(...ids(claim.messages))
              }
              return got
            })
          const all = (yield* Effect.all(
            Array.from({ length: 8 }, (_, n) => worker(n)),
            { concurrency: "unbounded" }
          )).flat()
          expect(all.toSorted()).toEqual(ids(samples).toSorted())
        })
      )

      test(
        "misses nothing that is appended while others claim",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lanes = Array.from({ length: 3 }, newLane)
          const wanted: Array<string> = []
          const got: Array<string> = []
          const fill = Effect.gen(function* () {
            for (let i = 0; i < 60; i++) wanted.push(...ids(yield* put([{ destination: lanes[i % 3]! }])))
          })
          const drain = Effect.gen(function* () {
            while (got.length < 60) {
              const claim = yield* queue.claim({ ...asWorker("w"), limit: 2 })
              if (claim === null) yield* Effect.sleep("1 millis")
              else got.push(...ids(claim.messages))
            }
          })
          yield* Effect.all([fill, drain, drain], { concurrency: "unbounded", discard: true })
          expect(got.toSorted()).toEqual(wanted.toSorted())
        })
      )
    })

    describe("a message", () => {
      test(
        "that was cancelled while it waited is not handed out",
        Effect.gen(function* () {
          const lane = newLane()
          const [gone, stays] = yield* put([{ destination: lane }, { destination: lane }])
          yield* (yield* EventStore).append([next(gone!, { type: "CancelMessage", reason: null }).entry])
          expect(yield* claimAll).toEqual([stays!.id])
          expect(yield* (yield* Queue).nextDueAt).toBeNull()
        })
      )

      test(
        "whose append was refused neither enters nor leaves",
        Effect.gen(function* () {
          const store = yield* EventStore
          const [sample] = yield* put([{}])
          const cancel = next(sample!, { type: "CancelMessage", reason: null }).entry
          yield* store.append([
            { ...cancel, expected: 5 },
            { ...opened().entry, expected: 2 }
          ])
          expect(yield* claimAll).toEqual([sample!.id])
        })
      )

      test(
        "that was delivered and released is gone",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          const claim = yield* queue.claim(asWorker("w", "150 millis"))
          const start = started(sample!, { fence: claim!.batch })
          yield* store.append([start.entry])
          yield* store.append([settled(start.after, delivered, { fence: claim!.batch }).entry])
          yield* queue.release(claim!.batch, [])
          yield* Effect.sleep("400 millis")
          expect(yield* claimAll).toEqual([])
          expect(yield* queue.takeOver("other", minute, 10)).toEqual([])
        })
      )

      test(
        "that failed waits until its retry is due",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const [sample] = yield* put([
            { retry: { strategy: "fixed", baseMs: anHour, attemptsMax: 3, jitter: [1, 1] } }
          ])
          const claim = yield* queue.claim(asWorker("w"))
          const start = started(sample!, { fence: claim!.batch })
          const failed = settled(start.after, unreachable(), { fence: claim!.batch })
          yield* store.append([start.entry])
          yield* store.append([failed.entry])
          yield* queue.release(claim!.batch, [])
          expect(yield* claimAll).toEqual([])
          expect(yield* queue.nextDueAt).toEqual(failed.after.message.progress.dueAt)
        })
      )

      test(
        "that is replayed after its ending waits again",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const [sample] = yield* put([{ retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } }])
          const claim = yield* queue.claim(asWorker("w"))
          const start = started(sample!, { fence: claim!.batch })
          const dead = settled(start.after, unreachable(), { fence: claim!.batch })
          const replay = next(dead.after, { type: "ReplayMessage", now: inMillis(-1), reason: null })
          yield* store.append([start.entry])
          yield* store.append([dead.entry])
          yield* queue.release(claim!.batch, [])
          expect(yield* claimAll).toEqual([])
          yield* store.append([replay.entry])
          const again = yield* queue.claim(asWorker("w"))
          expect(again!.messages).toMatchObject([{ messageId: sample!.id, version: 5, epoch: 2, attempt: 0 }])
        })
      )
    })

    describe("putting back", () => {
      test(
        "hands messages out again as they were, while the rest of the batch is held on",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const lane = newLane()
          const samples = yield* put([-300, -200, -100].map((ago) => ({ destination: lane, dueAt: inMillis(ago) })))
          const claim = yield* queue.claim(asWorker("w"))
          const [first, second, third] = claim!.messages
          yield* queue.putBack(claim!.batch, [first!.messageId, third!.messageId])
          const again = yield* queue.claim(asWorker("other"))
          expect(again!.messages).toEqual([first, third])
          const start = started(samples[1]!, { fence: claim!.batch })
          expect(yield* store.append([start.entry])).toMatchObject([{ type: "Appended" }])
          // Nothing of it belongs to the old batch any more, whatever its holder still believes.
          yield* queue.putBack(claim!.batch, [first!.messageId])
          yield* queue.release(claim!.batch, [first!, second!].map(handBack))
          expect(yield* claimAll).toEqual([second!.messageId])
        })
      )

      test(
        "all of a batch leaves an empty one that can be released or taken over",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          const claim = yield* queue.claim(asWorker("w", "150 millis"))
          yield* queue.putBack(claim!.batch, [sample!.id])
          yield* Effect.sleep("400 millis")
          const [taken] = yield* queue.takeOver("other", minute, 10)
          expect(taken!.messages).toEqual([])
          yield* queue.release(taken!.batch, [])
          expect(yield* claimAll).toEqual([sample!.id])
        })
      )

      test(
        "from a batch that is no longer held changes nothing",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          const claim = yield* queue.claim(asWorker("w"))
          yield* queue.release(claim!.batch, [])
          yield* queue.putBack(claim!.batch, [sample!.id])
          expect(yield* claimAll).toEqual([])
        })
      )
    })

    describe("a deferral of a lane", () => {
      test(
        "keeps it from handing out anything until it is over, and only this lane",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          const [first, second, other] = yield* put([
            { destination: lane, dueAt: inMillis(-200) },
            { destination: lane, dueAt: inMillis(-100) },
            { dueAt: inMillis(-50) }
          ])
          const before = DateTime.toEpochMillis(inMillis(0))
          yield* queue.deferLane(lane, DEFERRAL)
          const after = DateTime.toEpochMillis(inMillis(0))
          expect(yield* claimAll).toEqual([other!.id])
          const opensAt = DateTime.toEpochMillis((yield* queue.nextDueAt)!)
          expect(opensAt).toBeGreaterThanOrEqual(before + Duration.toMillis(DEFERRAL) - 5)
          expect(opensAt).toBeLessThanOrEqual(after + Duration.toMillis(DEFERRAL) + 5)
          yield* Effect.sleep(Duration.sum(DEFERRAL, Duration.millis(50)))
          expect(yield* claimAll).toEqual([first!.id, second!.id])
        })
      )

      test(
        "holds for what is put into the lane, or back into it, while it lasts",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          const [early] = yield* put([{ destination: lane, dueAt: inMillis(-200) }])
          const claim = yield* queue.claim(asWorker("w"))
          yield* queue.deferLane(lane, DEFERRAL)
          yield* queue.release(claim!.batch, claim!.messages.map(handBack))
          const [late] = yield* put([{ destination: lane, dueAt: inMillis(-100) }])
          expect(yield* claimAll).toEqual([])
          yield* Effect.sleep(Duration.sum(DEFERRAL, Duration.millis(50)))
          expect(yield* claimAll).toEqual([early!.id, late!.id])
        })
      )

      test(
        "of a lane nobody sent anything to yet holds too",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          yield* queue.deferLane(lane, minute)
          yield* put([{ destination: lane, dueAt: inMillis(-100) }])
          expect(yield* claimAll).toEqual([])
        })
      )

      test(
        "is never shortened by a later one",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          yield* put([{ destination: lane, dueAt: inMillis(-100) }])
          yield* queue.deferLane(lane, minute)
          yield* queue.deferLane(lane, Duration.millis(50))
          yield* Effect.sleep("100 millis")
          expect(yield* claimAll).toEqual([])
        })
      )
    })

    describe("a release", () => {
      test(
        "puts unstarted messages back as they were before the claim",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          yield* put([-300, -200, -100].map((ago) => ({ destination: lane, dueAt: inMillis(ago) })))
          const before = yield* queue.claim(asWorker("w"))
          const [first, second, third] = before!.messages
          yield* queue.release(before!.batch, [handBack(third!), handBack(first!)])
          const after = yield* queue.claim(asWorker("w"))
          expect(after!.messages).toEqual([first, third])
          expect(ids(after!.messages)).not.toContain(second!.messageId)
        })
      )

      test(
        "of a batch that is no longer held changes nothing",
        Effect.gen(function* () {
          const queue = yield* Queue
          yield* put([{}])
          const lost = yield* queue.claim(asWorker("first", "150 millis"))
          yield* Effect.sleep("400 millis")
          const [taken] = yield* queue.takeOver("second", minute, 10)
          yield* queue.release(lost!.batch, lost!.messages.map(handBack))
          expect(yield* claimAll).toEqual([])
          expect(yield* queue.renew([lost!.batch, taken!.batch], minute)).toEqual(new Set([taken!.batch]))
        })
      )

      test(
        "twice puts nothing back twice",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          const claim = yield* queue.claim(asWorker("w"))
          const back = claim!.messages.map(handBack)
          yield* queue.release(claim!.batch, back)
          yield* queue.release(claim!.batch, back)
          expect(yield* claimAll).toEqual([sample!.id])
        })
      )
    })

    describe("a lease", () => {
      test(
        "that lives cannot be taken over, and its messages are nobody else's",
        Effect.gen(function* () {
          const queue = yield* Queue
          yield* put([{}])
          yield* queue.claim(asWorker("first"))
          expect(yield* queue.takeOver("second", minute, 10)).toEqual([])
          expect(yield* claimAll).toEqual([])
        })
      )

      test(
        "that ran out is taken over once, with its messages, under a new batch",
        Effect.gen(function* () {
          const queue = yield* Queue
          yield* put([{}, {}])
          const lost = yield* queue.claim(asWorker("first", "150 millis"))
          yield* Effect.sleep("400 millis")
          const takers = ["second", "third", "fourth"]
          const taken = (yield* Effect.forEach(takers, (worker) => queue.takeOver(worker, minute, 10), {
            concurrency: "unbounded"
          })).flat()
          expect(taken).toHaveLength(1)
          expect(taken[0]!.batch).not.toBe(lost!.batch)
          const handed = lost!.messages.map(({ messageId, lane, dueAt, version, epoch, attempt }) => ({
            messageId,
            lane,
            dueAt,
            version,
            epoch,
            attempt
          }))
          const byId = (a: AbandonedMessage, b: AbandonedMessage) => (a.messageId < b.messageId ? -1 : 1)
          expect(taken[0]!.messages.toSorted(byId)).toEqual(handed.toSorted(byId))
          expect(yield* claimAll).toEqual([])
        })
      )

      test(
        "gets a new name from its own holder, and nothing that is fenced by the old one has an effect any more",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [one, other] = yield* put([{}, {}])
          const claim = yield* queue.claim(asWorker("w", "150 millis"))
          yield* queue.putBack(claim!.batch, [other!.id])
          const [renamed, ...none] = yield* queue.rename(
            [claim!.batch, "00000000-0000-4000-8000-000000000009" as BatchId],
            minute
          )
          expect(none).toEqual([])
          expect(renamed!.batch).not.toBe(claim!.batch)
          expect(ids(renamed!.messages)).toEqual([one!.id])
          expect(claim!.messages.find(({ messageId }) => messageId === one!.id)).toMatchObject(renamed!.messages[0]!)
          const [late] = yield* (yield* EventStore).append([started(one!, { fence: claim!.batch }).entry])
          expect(late).toEqual({ type: "FenceLost" })
          expect(yield* queue.rename([claim!.batch], minute)).toEqual([])
          // Its lease begins anew.
          yield* Effect.sleep("400 millis")
          expect(yield* queue.takeOver("another", minute, 10)).toEqual([])
          yield* queue.release(renamed!.batch, renamed!.messages)
          expect((yield* claimAll).toSorted()).toEqual([one!.id, other!.id].toSorted())
        })
      )

      test(
        "that was taken over runs out too, and can be taken over again",
        Effect.gen(function* () {
          const queue = yield* Queue
          const [sample] = yield* put([{}])
          yield* queue.claim(asWorker("first", "150 millis"))
          yield* Effect.sleep("400 millis")
          const [second] = yield* queue.takeOver("second", Duration.millis(150), 10)
          yield* Effect.sleep("400 millis")
          const [third] = yield* queue.takeOver("third", minute, 10)
          expect(third!.messages).toEqual(second!.messages)
          yield* queue.release(third!.batch, third!.messages)
          expect(yield* claimAll).toEqual([sample!.id])
        })
      )

      test(
        "is taken over by no more batches than asked for",
        Effect.gen(function* () {
          const queue = yield* Queue
          for (let batch = 0; batch < 3; batch++) {
            yield* put([{}])
            yield* queue.claim(asWorker("first", "150 millis"))
          }
          yield* Effect.sleep("400 millis")
          expect(yield* queue.takeOver("second", minute, 2)).toHaveLength(2)
          expect(yield* queue.takeOver("second", minute, 2)).toHaveLength(1)
        })
      )

      test(
        "that is renewed does not run out",
        Effect.gen(function* () {
          const queue = yield* Queue
          yield* put([{}])
          const claim = yield* queue.claim(asWorker("first", "150 millis"))
          expect(yield* queue.renew([claim!.batch], minute)).toEqual(new Set([claim!.batch]))
          yield* Effect.sleep("400 millis")
          expect(yield* queue.takeOver("second", minute, 10)).toEqual([])
        })
      )

      test(
        "is renewed for every named batch that still exists, and for no other",
        Effect.gen(function* () {
          const queue = yield* Queue
          const claims = []
          for (const worker of ["first", "first", "first", "other"]) {
            yield* put([{}])
            claims.push(yield* queue.claim(asWorker(worker, worker === "other" ? "150 millis" : minute)))
          }
          const [one, two, three, other] = claims.map((claim) => claim!.batch)
          yield* queue.release(two!, [])
          expect(yield* queue.renew([one!, two!, three!], minute)).toEqual(new Set([one, three]))
          yield* Effect.sleep("400 millis")
          yield* queue.renew([one!, three!], minute)
          const taken = yield* queue.takeOver("second", minute, 10)
          expect(taken).toHaveLength(1)
          expect(yield* queue.renew([other!], minute)).toEqual(new Set())
          expect(taken[0]!.batch).not.toBe(other)
        })
      )
    })

    describe("awaitWork", () => {
      test(
        "returns when the time is up",
        Effect.gen(function* () {
          expect(yield* elapsed((yield* Queue).awaitWork(Duration.millis(200)))).toBeLessThan(30_000)
        })
      )

      test(
        "returns early when work is appended, and the work is there",
        Effect.gen(function* () {
          const queue = yield* Queue
          expect(yield* claimAll).toEqual([])
          const waiting = Effect.gen(function* () {
            const began = DateTime.nowUnsafe()
            for (;;) {
              yield* queue.awaitWork(Duration.seconds(60))
              const found = yield* claimAll
              if (found.length > 0)
                return { found, waited: DateTime.toEpochMillis(DateTime.nowUnsafe()) - DateTime.toEpochMillis(began) }
            }
          })
          const [{ found, waited }, samples] = yield* Effect.all([waiting, Effect.delay(put([{}]), "150 millis")], {
            concurrency: "unbounded"
          })
          expect(found).toEqual(ids(samples))
          expect(waited).toBeLessThan(30_000)
        })
      )

      test(
        "does not sleep over work that was appended between an empty claim and the wait",
        Effect.gen(function* () {
          const queue = yield* Queue
          expect(yield* claimAll).toEqual([])
          const samples: ReadonlyArray<Sample> = yield* put([{}])
          expect(yield* elapsed(queue.awaitWork(Duration.seconds(60)))).toBeLessThan(30_000)
          expect(yield* claimAll).toEqual(ids(samples))
        })
      )

      /** Until nothing more is heard of what happened before. */
      const untilQuiet = Effect.gen(function* () {
        const queue = yield* Queue
        while ((yield* elapsed(queue.awaitWork(Duration.millis(300)))) < 290);
      })

      test(
        "returns when the head of a line ends and the next one may go",
        Effect.gen(function* () {
          const queue = yield* Queue
          const lane = newLane()
          const line = Array.from({ length: 3 }, () => ({ destination: lane, orderingKey: "a" }))
          const [first, second, third] = yield* put(line)
          const { batch } = (yield* queue.claim(asWorker("w")))!
          const start = started(first!, { fence: batch })
          yield* (yield* EventStore).append([start.entry])
          yield* untilQuiet
          yield* (yield* EventStore).append([settled(start.after, delivered, { fence: batch }).entry])
          expect(yield* elapsed(queue.awaitWork(Duration.seconds(60)))).toBeLessThan(30_000)
          expect(yield* claimAll).toEqual([second!.id])
          yield* untilQuiet
          yield* (yield* EventStore).append([next(second!, { type: "CancelMessage", reason: "changed my mind" }).entry])
          expect(yield* elapsed(queue.awaitWork(Duration.seconds(60)))).toBeLessThan(30_000)
          expect(yield* claimAll).toEqual([third!.id])
        })
      )

      test(
        "returns when a claimed message waits again",
        Effect.gen(function* () {
          const queue = yield* Queue
          yield* put([{}, {}])
          const { batch, messages } = (yield* queue.claim(asWorker("w")))!
          yield* untilQuiet
          yield* queue.putBack(batch, [messages[0]!.messageId])
          expect(yield* elapsed(queue.awaitWork(Duration.seconds(60)))).toBeLessThan(30_000)
          yield* untilQuiet
          yield* queue.release(batch, messages.slice(1).map(handBack))
          expect(yield* elapsed(queue.awaitWork(Duration.seconds(60)))).toBeLessThan(30_000)
          expect(yield* claimAll).toHaveLength(2)
        })
      )
    })
  })
}
