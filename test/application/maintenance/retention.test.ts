import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { forgetEnded, retention } from "../../../src/application/maintenance/retention.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import { MessageId } from "../../../src/domain/ids.ts"
import * as Channels from "../../../src/setup/channels.ts"

const found = [{ id: MessageId.make("0198f0a2-3c52-7c43-8b1a-000000000001"), version: 4 }]

/** Answers each look with the next of these places to go on from, each after so many milliseconds; then with nothing left. */
const answering = (answers: ReadonlyArray<{ readonly next: string | null; readonly tookMs?: number } | "busy">) => {
  const asked: Array<{ readonly endedBefore: number; readonly from: string | null; readonly limit: number }> = []
  const removedBefores: Array<number> = []
  const left = [...answers]
  let isBusy = false
  const port = Retention.of({
    find: Effect.fnUntraced(function* ({ ended }, from, limit) {
      asked.push({ endedBefore: DateTime.toEpochMillis(ended!), from, limit })
      const answer = left.shift() ?? { next: null }
      isBusy = answer === "busy"
      if (answer === "busy") return { messages: found, next: "on" }
      yield* TestClock.adjust(answer.tookMs ?? 0)
      return { messages: found, next: answer.next }
    }),
    forget: () => Effect.sync(() => (isBusy ? null : 1)),
    forgetEvents: () => Effect.succeed({ removed: 2, next: null }),
    forgetDestinations: (removedBefore, journals) =>
      Effect.sync(() => {
        removedBefores.push(DateTime.toEpochMillis(removedBefore))
        expect(journals.get("webhook")).toBe("endpoint")
        return 4
      })
  })
  return { asked, removedBefores, layer: Layer.merge(Layer.succeed(Retention, port), Channels.unused) }
}

const week = { keep: Duration.days(7), keepDead: Duration.days(365), daysMax: null }
const day = Duration.toMillis(Duration.days(1))

describe("a pass of retention", () => {
  it.effect(
    "goes on where each step ended, by the time it began, in steps as large as a tenth of a second allows",
    () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("400 days")
        const { asked, removedBefores, layer } = answering([
          { next: "a" },
          { next: "b" },
          { next: "c", tookMs: 200 },
          { next: "d", tookMs: 100_000 },
          { next: null }
        ])
        const passed = yield* forgetEnded(week).pipe(Effect.provide(layer))
        expect(passed).toEqual({ messages: 5, events: 2, destinations: 4 })
        expect(asked.map(({ from }) => from)).toEqual([null, "a", "b", "c", "d"])
        expect(asked.map(({ limit }) => limit)).toEqual([1_000, 2_000, 4_000, 1_000, 100])
        expect(new Set(asked.map(({ endedBefore }) => endedBefore))).toEqual(new Set([393 * day]))
        expect(removedBefores).toEqual([35 * day])
      })
  )

  it.effect("leaves destinations where dead letters are kept for ever", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("400 days")
      const { removedBefores, layer } = answering([])
      yield* forgetEnded({ ...week, keepDead: null }).pipe(Effect.provide(layer))
      expect(removedBefores).toEqual([])
    })
  )

  it.effect("leaves messages to another process that is at it", () =>
    Effect.gen(function* () {
      const { asked, layer } = answering(["busy"])
      expect((yield* forgetEnded(week).pipe(Effect.provide(layer))).messages).toBe(0)
      expect(asked).toHaveLength(1)
    })
  )

  it.effect("comes every hour, and of messages that are kept for less than a day more often", () =>
    Effect.sync(() => {
      const every = (keep: Duration.Input | null) =>
        Duration.toMinutes(retention({ ...week, keep: keep === null ? null : Duration.fromInputUnsafe(keep) }).every)
      expect([null, "7 days", "12 hours", "1 minute"].map((keep) => every(keep as never))).toEqual([60, 60, 30, 1])
    })
  )
})
