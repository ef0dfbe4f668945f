import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../../src/application/errors.ts"
import { Retention, type Sweep } from "../../../src/application/ports/Retention.ts"
import { forgetEnded, retain } from "../../../src/application/retention/retain.ts"

interface Asked {
  readonly at: number
  readonly endedBefore: number
  readonly from: string | null
  readonly limit: number
}

/** Answers each sweep with the next of these, then with nothing left. */
const answering = (answers: ReadonlyArray<Sweep | null | "unavailable">) => {
  const asked: Array<Asked> = []
  const deedsBefore: Array<number> = []
  const left = [...answers]
  const retention = Retention.of({
    sweep: Effect.fnUntraced(function* ({ ended }, from, limit) {
      const at = DateTime.toEpochMillis(yield* DateTime.now)
      asked.push({ at, endedBefore: DateTime.toEpochMillis(ended!), from, limit })
      const answer = left.length === 0 ? { removed: 0, next: null } : left.shift()!
      return answer === "unavailable" ? yield* new StoreUnavailable({ cause: new Error("gone") }) : answer
    }),
    sweepEvents: () => Effect.succeed({ removed: 2, next: null }),
    sweepDeeds: (before) =>
      Effect.sync(() => {
        deedsBefore.push(DateTime.toEpochMillis(before))
        return { removed: 1, next: null }
      })
  })
  return { asked, deedsBefore, retention }
}

const week = { keep: Duration.days(7), keepDead: Duration.days(365), daysMax: null }
const day = Duration.toMillis(Duration.days(1))

describe("forgetting", () => {
  it.effect("goes on where each step ended, with pauses, by the time it began", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("30 days")
      const { asked, retention } = answering([
        { removed: 1_000, next: "a" },
        { removed: 0, next: "b" },
        { removed: 3, next: null }
      ])
      const pass = yield* Effect.forkChild(forgetEnded(week).pipe(Effect.provideService(Retention, retention)))
      yield* TestClock.adjust("10 seconds")
      expect(yield* Fiber.join(pass)).toEqual({ messages: 1_003, events: 2, deeds: 1 })
      expect(asked.map(({ from }) => from)).toEqual([null, "a", "b"])
      expect(new Set(asked.map(({ endedBefore }) => endedBefore))).toEqual(new Set([23 * day]))
      expect(asked[1]!.at).toBeGreaterThan(asked[0]!.at)
      expect(Math.max(...asked.map(({ limit }) => limit))).toBeLessThanOrEqual(1_000)
    })
  )

  it.effect("keeps deeds as long as dead letters, for ever where those are kept for ever", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("400 days")
      const { deedsBefore, retention } = answering([])
      yield* forgetEnded(week).pipe(Effect.provideService(Retention, retention))
      expect(deedsBefore).toEqual([35 * day])
      expect(yield* forgetEnded({ ...week, keepDead: null }).pipe(Effect.provideService(Retention, retention))).toEqual(
        {
          messages: 0,
          events: 2,
          deeds: 0
        }
      )
      expect(deedsBefore).toEqual([35 * day])
    })
  )

  it.effect("is left to another process that is at it", () =>
    Effect.gen(function* () {
      const { asked, retention } = answering([null])
      expect(yield* forgetEnded(week).pipe(Effect.provideService(Retention, retention))).toEqual({
        messages: 0,
        events: 2,
        deeds: 1
      })
      expect(asked).toHaveLength(1)
    })
  )

  it.effect("happens every hour, also after an hour in which the store was away", () =>
    Effect.gen(function* () {
      const { asked, retention } = answering(["unavailable"])
      yield* Effect.forkChild(retain(week).pipe(Effect.provideService(Retention, retention)))
      yield* TestClock.adjust("30 minutes")
      expect(asked).toHaveLength(1)
      yield* TestClock.adjust("40 minutes")
      expect(asked).toHaveLength(2)
      yield* TestClock.adjust("1 hour")
      expect(asked).toHaveLength(3)
    })
  )
})
