/** One stream that can't be processed holds up nothing but itself. */
import { it } from "@effect/vitest"
import { DateTime, Duration, Effect } from "effect"
import { describe, expect } from "vitest"
import { recover } from "../../../src/application/deliver/recover.ts"
import { Senders } from "../../../src/application/deliver/Senders.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { newLane, opened, started } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const channel = {
  send: () => Effect.never,
  capacity: () => Effect.succeed(1),
  dedupes: () => Effect.succeed(true)
}

/** What another worker left behind: messages with an open attempt, in one batch that ran out. */
const abandoned = Effect.gen(function* () {
  const store = yield* EventStore
  const queue = yield* Queue
  const destination = newLane()
  const messages = [0, 1, 2].map(() => opened({ destination }))
  yield* store.append(messages.map(({ entry }) => entry))
  const lease = Duration.millis(1)
  const claim = yield* queue.claim({ worker: "gone", limit: 9, perLane: 9, room: new Map(), lease })
  expect(claim!.messages).toHaveLength(3)
  yield* store.append(messages.map(({ after }) => started(after, { fence: claim!.batch }).entry))
  yield* Effect.sleep("20 millis")
  return messages.map(({ after }) => after.id)
})

describe("a stream that can't be processed", () => {
  it.live.each(["unreadable", "impossible"])("does not keep its batch from being recovered (%s)", (kind) =>
    Effect.gen(function* () {
      const [before, broken, behind] = yield* abandoned
      const store = yield* EventStore
      const seen: EventStore["Service"] = {
        ...store,
        loadMany: (ids) =>
          Effect.map(store.loadMany(ids), (streams) => {
            const stream = streams.get(broken!)
            if (stream === undefined) return streams
            if (kind === "unreadable") throw new Error("no release wrote this fact")
            // A history that begins in the middle.
            return new Map([...streams, [broken!, { ...stream, facts: stream.facts.slice(1) }]])
          })
      }
      const began = yield* DateTime.now
      const recovered = recover("another", Duration.minutes(1)).pipe(Effect.provideService(EventStore, seen))
      expect(yield* recovered).toBe(1)
      const last = Effect.fnUntraced(function* (id: typeof before) {
        return (yield* store.load(id!)).facts.at(-1)!.fact.type
      })
      expect(yield* Effect.forEach([before, broken, behind], last)).toEqual([
        "AttemptAbandoned",
        "AttemptStarted",
        "AttemptAbandoned"
      ])
      const queue = yield* Queue
      // Nothing is held any more, and the broken one waits, so that it is looked at again.
      expect(yield* queue.takeOver("census", Duration.minutes(1), 9)).toEqual([])
      const next = yield* queue.nextDueAt
      expect(next).not.toBeNull()
      expect(DateTime.isGreaterThanOrEqualTo(next!, began)).toBe(true)
      expect(yield* recover("another", Duration.minutes(1))).toBe(0)
    }).pipe(Effect.scoped, Effect.provideService(Senders, { webhook: channel }), Effect.provide(MemoryPorts.layer))
  )
})
