/** What every store promises about messages that can't be processed, and about messages that are in no place of the queue. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { endAsides } from "../../../src/application/deliver/endAsides.ts"
import { mendMessages } from "../../../src/application/deliver/mendMessages.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { type BatchId, Queue } from "../../../src/application/ports/Queue.ts"
import { QueueRepair } from "../../../src/application/ports/QueueRepair.ts"
import { PAUSES_MS, SetAside, type Unprocessable } from "../../../src/application/ports/SetAside.ts"
import { judgeMessage } from "../../../src/application/store/laws.ts"
import { type MessageId, OrgId } from "../../../src/domain/ids.ts"
import { placeOf } from "../../../src/domain/message/place.ts"
import { viewOf } from "../../../src/domain/message/view.ts"
import { streamOf } from "../../../src/domain/streams.ts"
import { makeEndpoint } from "../destinations/samples.ts"
import {
  delivered,
  inMillis,
  newLane,
  newMessageId,
  next,
  type Sample,
  type StorePorts,
  settled,
  someStep,
  started,
  unreachable
} from "../sample.ts"
import { put, write } from "../written.ts"
import { asWorker, claimAll, minute } from "./claims.ts"

const broken = ({ id, lane }: Sample): Unprocessable => ({
  ...{ messageId: id, orgId: null, lane, reason: "failed" },
  ...{ detail: "it broke", version: 1 }
})

const isAside = Effect.fnUntraced(function* ({ id }: Sample) {
  return (yield* (yield* SetAside).find([id])).size > 0
})

const claimed = Effect.map(
  Effect.flatMap(Queue, (queue) => queue.claim(asWorker("w"))),
  (claim) => claim!.batch
)

/** Takes it out of the queue against its facts, as no worker may. */
const lose = Effect.fnUntraced(function* () {
  const queue = yield* Queue
  yield* queue.release(yield* claimed, [])
})

const listed = Effect.fnUntraced(function* (samples: ReadonlyArray<Sample>) {
  const store = yield* EventStore
  const views = yield* Effect.forEach(samples, ({ id }) =>
    Effect.map(store.load(id), ({ facts }) => viewOf(id, facts)!)
  )
  expect(yield* (yield* MessageViews).project(yield* someStep("messages"), views)).toBe(true)
})

const mend = (id: MessageId, strays = false) => Effect.map(mendMessages([id], { strays }), ({ mended }) => mended)

export const setAsideContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name}: a message that is set aside`, () => {
    test(
      "leaves its batch to the others, and is handed out no more",
      Effect.gen(function* () {
        const queue = yield* Queue
        const setAside = yield* SetAside
        const [one, other] = yield* put([{}, {}])
        const batch = yield* claimed
        yield* setAside.put(batch, [broken(one!)])
        yield* queue.release(batch, [
          { messageId: other!.id, lane: other!.lane, dueAt: inMillis(-1_000), version: 1, epoch: 1, attempt: 0 },
          { messageId: one!.id, lane: one!.lane, dueAt: inMillis(-1_000), version: 1, epoch: 1, attempt: 0 }
        ])
        expect(yield* claimAll).toEqual([other!.id])
        const found = (yield* setAside.find([one!.id, other!.id])).get(one!.id)!
        expect(found).toMatchObject({ lane: one!.lane, reason: "failed", detail: "it broke", tries: 1 })
        expect(DateTime.distance(found.since, found.againAt)).toEqual(Duration.millis(PAUSES_MS[0]!))
        expect((yield* setAside.list({ cursor: null, limit: 9 })).items).toEqual([
          { ...found, stream: streamOf(one!.id), parts: ["queue"] }
        ])
      })
    )

    test(
      "belongs to the org of its destination, where its facts can't say to whom",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const orgId = OrgId.make("acme")
        const { id: lane } = yield* makeEndpoint(orgId)
        const [one, other] = yield* put([{ orgId, destination: lane }, {}])
        yield* setAside.put(yield* claimed, [broken(one!), broken(other!)])
        const found = yield* setAside.find([one!.id, other!.id])
        // Nobody ever set up the destination of the other.
        expect([found.get(one!.id)?.orgId, found.get(other!.id)?.orgId]).toEqual([orgId, null])
      })
    )

    test(
      "is not taken out of a batch that another worker has by now",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one] = yield* put([{}])
        yield* setAside.put("00000000-0000-4000-8000-000000000009" as BatchId, [broken(one!)])
        expect((yield* setAside.find([one!.id])).size).toBe(0)
        expect(yield* claimAll).toEqual([one!.id])
      })
    )

    test(
      "is tried again when its time has come, by one caller at a time",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one, other] = yield* put([{}, {}])
        const batch = yield* claimed
        yield* setAside.put(batch, [broken(one!), broken(other!)])
        expect(yield* setAside.due(9)).toEqual([])
        expect(yield* setAside.tryAgain([one!.id])).toBe(1)
        expect(yield* setAside.due(9)).toEqual([one!.id])
        expect(yield* setAside.due(9)).toEqual([])
        expect(yield* setAside.tryAgain(null)).toBe(2)
        expect((yield* setAside.due(9)).toSorted()).toEqual([one!.id, other!.id].toSorted())
      })
    )

    test(
      "waits as before once it is mended, and longer when it is set aside again",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one] = yield* put([{}])
        yield* setAside.put(yield* claimed, [broken(one!)])
        const before = (yield* setAside.find([one!.id])).get(one!.id)!
        expect(yield* mend(one!.id)).toEqual([one!.id])
        expect((yield* setAside.find([one!.id])).size).toBe(0)
        expect((yield* setAside.list({ cursor: null, limit: 9 })).items).toEqual([])
        const claim = yield* (yield* Queue).claim(asWorker("w"))
        expect(claim!.messages).toMatchObject([{ messageId: one!.id, version: 1, epoch: 1, attempt: 0 }])
        yield* setAside.put(claim!.batch, [broken(one!)])
        const after = (yield* setAside.find([one!.id])).get(one!.id)!
        expect(after).toMatchObject({ tries: 2, since: before.since })
        expect(DateTime.isGreaterThan(after.againAt, before.againAt)).toBe(true)
      })
    )

    test(
      "is recovered when an attempt was under way",
      Effect.gen(function* () {
        const queue = yield* Queue
        const [one] = yield* put([{}])
        const batch = yield* claimed
        yield* write(started(one!, { fence: batch }))
        yield* (yield* SetAside).put(batch, [broken(one!)])
        yield* queue.release(batch, [])
        expect(yield* mend(one!.id)).toEqual([one!.id])
        expect(yield* claimAll).toEqual([])
        yield* Effect.sleep("20 millis")
        const [taken] = yield* queue.takeOver("another", minute, 9)
        expect(taken!.messages).toMatchObject([{ messageId: one!.id, version: 1, attempt: 0 }])
      })
    )

    test(
      "is set aside no longer once a fact says where it goes",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const queue = yield* Queue
        const line = { destination: newLane(), orderingKey: "k" }
        const [one] = yield* put([{ ...line, retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1, jitter: [1, 1] } }])
        const batch = yield* claimed
        const begun = started(one!, { fence: batch })
        const dead = settled(begun.after, unreachable(), { fence: batch })
        yield* write(begun, dead)
        // Its batch still names it, and whoever takes that over may not be able to read it.
        yield* setAside.put(batch, [broken(one!)])
        yield* queue.release(batch, [])
        expect((yield* setAside.find([one!.id])).size).toBe(1)
        const [ahead] = yield* put([line])
        yield* write(next(dead.after, { type: "ReplayMessage", now: inMillis(0), reason: null, edited: false }))
        expect((yield* setAside.find([one!.id])).size).toBe(0)
        // Where it waits for its turn it is nobody's to set aside.
        yield* setAside.put(null, [broken(one!)])
        expect((yield* setAside.find([one!.id])).size).toBe(0)
        const [cancelled] = yield* put([{}])
        yield* setAside.put(null, [broken(cancelled!)])
        yield* write(next(cancelled!, { type: "CancelMessage", reason: null }))
        expect((yield* setAside.find([cancelled!.id])).size).toBe(0)
        expect(yield* claimAll).toEqual([ahead!.id])
      })
    )

    test(
      "is set aside no longer once somebody has delivered it, though that moves nothing in the queue",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one, settledBefore, other] = yield* put([{}, {}, {}])
        const batch = yield* claimed
        const begun = [one!, settledBefore!, other!].map((each) => started(each, { fence: batch }))
        yield* write(...begun)
        yield* setAside.put(null, [
          { ...broken(one!), version: 2 },
          { ...broken(other!), version: 2 }
        ])
        yield* endAsides(null, 9)
        // So far nobody has said where it goes.
        expect([yield* isAside(one!), yield* isAside(other!)]).toEqual([true, true])
        const steps = begun.map(({ after }) => settled(after, delivered, { fence: batch }))
        yield* write(steps[0]!, steps[1]!)
        // Its batch still names it.
        yield* setAside.put(batch, [broken(settledBefore!)])
        expect([yield* isAside(one!), yield* isAside(settledBefore!)]).toEqual([true, true])
        expect(yield* endAsides(null, 9)).toBe(null)
        expect(yield* Effect.forEach([one!, settledBefore!, other!], isAside)).toEqual([false, false, true])
        expect((yield* setAside.list({ cursor: null, limit: 9 })).items).toMatchObject([{ messageId: other!.id }])
        // Somebody looked at all there is, and could not tell that it had ended.
        yield* setAside.put(null, [{ ...broken(one!), version: steps[0]!.after.version }])
        yield* endAsides(null, 9)
        expect(yield* isAside(one!)).toBe(false)
      })
    )

    test(
      "is set aside no longer once later facts gave it a place, and not by those that were looked at",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const wish = { retry: { strategy: "fixed", baseMs: 3_600_000, attemptsMax: 9, jitter: [1, 1] } } as const
        const [waiting, aside] = yield* put([wish, wish])
        const batch = yield* claimed
        const begun = [waiting!, aside!].map((each) => started(each, { fence: batch }))
        yield* write(...begun)
        const failed = begun.map(({ after }) => settled(after, unreachable(), { fence: batch }))
        yield* write(...failed)
        // Whoever looked last looked at all there is of the one, and long ago at the other.
        yield* setAside.put(batch, [
          { ...broken(waiting!), version: 1 },
          { ...broken(aside!), version: failed[1]!.after.version }
        ])
        yield* endAsides(null, 9)
        expect([yield* isAside(waiting!), yield* isAside(aside!)]).toEqual([false, true])
        // What was looked at earlier and comes later changes nothing of it.
        yield* setAside.put(null, [broken(aside!)])
        yield* endAsides(null, 9)
        expect(yield* isAside(aside!)).toBe(true)
      })
    )

    test(
      "stays so when somebody looked at it again meanwhile",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one] = yield* put([{}])
        yield* setAside.put(null, [broken(one!)])
        const { messages } = yield* setAside.lookedAt(null, 9)
        expect(messages).toEqual([{ messageId: one!.id, version: 1 }])
        yield* setAside.put(null, [{ ...broken(one!), version: 2 }])
        yield* setAside.end(messages)
        expect(yield* isAside(one!)).toBe(true)
        yield* setAside.end([{ messageId: one!.id, version: 2 }])
        expect(yield* isAside(one!)).toBe(false)
      })
    )

    test(
      "is looked for in stretches, and gone with a stream that was forgotten",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const samples = yield* put([{}, {}, {}])
        const never = { ...broken(samples[0]!), messageId: newMessageId() }
        yield* setAside.put(null, [...samples.map(broken), never])
        const found: Array<MessageId> = []
        let after: MessageId | null = null
        do {
          const { messages, next }: Effect.Success<ReturnType<typeof setAside.lookedAt>> = yield* setAside.lookedAt(
            after,
            2
          )
          expect(messages.length).toBeLessThanOrEqual(2)
          found.push(...messages.map(({ messageId }) => messageId))
          after = next
        } while (after !== null)
        const ids = samples.map(({ id }) => id)
        expect(found).toEqual([...ids, never.messageId].toSorted())
        yield* endAsides(null, 9)
        const left = yield* setAside.lookedAt(null, 9)
        expect(left.messages.map(({ messageId }) => messageId)).toEqual(ids.toSorted())
      })
    )

    test(
      "is forgotten when it has ended",
      Effect.gen(function* () {
        const setAside = yield* SetAside
        const [one] = yield* put([{}])
        yield* setAside.put(yield* claimed, [broken(one!)])
        yield* write(next(one!, { type: "CancelMessage", reason: null }))
        yield* mend(one!.id)
        expect((yield* setAside.find([one!.id])).size).toBe(0)
        expect(yield* claimAll).toEqual([])
      })
    )
  })

  describe(`${name}: a message that is in no place of the queue`, () => {
    test(
      "is found, and waits again once it is mended",
      Effect.gen(function* () {
        const repair = yield* QueueRepair
        const destination = newLane()
        const samples = yield* put([
          { destination },
          { dueAt: inMillis(3_600_000) },
          { destination, dueAt: inMillis(-2_000) }
        ])
        const [lost, later, held] = samples
        yield* listed(samples)
        expect((yield* repair.lost(null, 9)).ids).toEqual([])
        yield* lose()
        expect((yield* repair.lost(null, 9)).ids.toSorted()).toEqual([lost!.id, held!.id].toSorted())
        expect(yield* repair.stillLost([lost!.id, later!.id])).toEqual([lost!.id])
        expect(yield* mend(lost!.id)).toEqual([lost!.id])
        expect(yield* mend(lost!.id)).toEqual([])
        expect(yield* mend(held!.id)).toEqual([held!.id])
        expect(yield* claimAll).toEqual([held!.id, lost!.id])
        // What a worker holds is where it should be.
        expect((yield* repair.lost(null, 9)).ids).toEqual([])
        expect(yield* mend(lost!.id, true)).toEqual([])
        expect(yield* claimAll).toEqual([])
      })
    )

    test(
      "is looked for in stretches",
      Effect.gen(function* () {
        const repair = yield* QueueRepair
        const queue = yield* Queue
        const samples = yield* put([{}, {}, { expiresAt: inMillis(3_600_000) }, {}, {}])
        // Those under way too, however many.
        const batch = yield* claimed
        yield* write(...samples.slice(3).map((sample) => started(sample, { fence: batch })))
        yield* listed(samples)
        yield* queue.release(batch, [])
        const found: Array<MessageId> = []
        let after: string | null = null
        do {
          const { ids, next }: Effect.Success<ReturnType<typeof repair.lost>> = yield* repair.lost(after, 2)
          expect(ids.length).toBeLessThanOrEqual(2)
          found.push(...ids)
          after = next
        } while (after !== null)
        expect(found.toSorted()).toEqual(samples.map(({ id }) => id).toSorted())
      })
    )

    test(
      "is left alone when a fact was added meanwhile",
      Effect.gen(function* () {
        const repair = yield* QueueRepair
        const [one] = yield* put([{}])
        yield* lose()
        const stream = streamOf(one!.id)
        const facts = (yield* (yield* Archive).streams([stream])).get(stream)!
        const judged = judgeMessage(facts)
        if (judged._tag === "Failure") throw new Error(judged.failure.detail)
        yield* write(next(one!, { type: "CancelMessage", reason: null }))
        const { version, position } = facts.at(-1)!
        const place = placeOf(judged.success.tracked)
        const verdicts = yield* repair.mend([{ messageId: one!.id, version, position, place }])
        expect(verdicts).toEqual(new Map([[one!.id, "changed"]]))
        expect(yield* claimAll).toEqual([])
      })
    )

    test(
      "keeps those behind it in its line waiting, and lets them go when it went",
      Effect.gen(function* () {
        const repair = yield* QueueRepair
        const queue = yield* Queue
        const line = { destination: newLane(), orderingKey: "k" }
        const samples = yield* put([line, line])
        const [head, second] = samples
        yield* listed(samples)
        yield* lose()
        expect((yield* repair.lost(null, 9)).ids).toEqual([head!.id])
        expect(yield* mend(second!.id)).toEqual([])
        expect(yield* mend(head!.id)).toEqual([head!.id])
        const batch = yield* claimed
        const begun = started(head!, { fence: batch })
        yield* write(begun, settled(begun.after, delivered, { fence: batch }))
        yield* queue.release(batch, [])
        expect(yield* claimAll).toEqual([second!.id])
        expect(yield* repair.mendLines(null, 9)).toEqual({ mended: 0, next: null })
        expect(yield* repair.mendLanes(null, 9)).toEqual({ mended: 0, next: null })
      })
    )

    test(
      "is looked for by one process at a time",
      Effect.gen(function* () {
        const repair = yield* QueueRepair
        expect(yield* repair.takeTurn("one", minute)).toBe(true)
        expect(yield* repair.takeTurn("other", minute)).toBe(false)
        expect(yield* repair.takeTurn("one", Duration.millis(50))).toBe(true)
        yield* Effect.sleep("400 millis")
        expect(yield* repair.takeTurn("other", minute)).toBe(true)
      })
    )
  })
}
