import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../../src/application/errors.ts"
import { AlertProgress } from "../../../src/application/ports/AlertProgress.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { Retention, type Sweep } from "../../../src/application/ports/Retention.ts"
import { forgetEnded, retain } from "../../../src/application/retention/retain.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

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
  const removedBefores: Array<number> = []
  const left = [...answers]
  const retention = Retention.of({
    sweep: Effect.fnUntraced(function* ({ ended }, from, limit) {
      const at = DateTime.toEpochMillis(yield* DateTime.now)
      asked.push({ at, endedBefore: DateTime.toEpochMillis(ended!), from, limit })
      const answer = left.length === 0 ? { removed: 0, next: null } : left.shift()!
      return answer === "unavailable" ? yield* new StoreUnavailable({ cause: new Error("gone") }) : answer
    }),
    sweepEvents: () => Effect.succeed({ removed: 2, next: null }),
    sweepDestinations: (removedBefore, journals) =>
      Effect.sync(() => {
        removedBefores.push(DateTime.toEpochMillis(removedBefore))
        expect(journals.get("webhook")).toBe("endpoint")
        return { removed: 4, next: null }
      }),
    sweepFronts: () => Effect.succeed({ removed: 7, next: null }),
    sweepDeeds: (before) =>
      Effect.sync(() => {
        deedsBefore.push(DateTime.toEpochMillis(before))
        return { removed: 1, next: null }
      })
  })
  return {
    asked,
    deedsBefore,
    removedBefores,
    layer: Layer.provideMerge(Layer.succeed(Retention, retention), MemoryPorts.layer)
  }
}

const week = { keep: Duration.days(7), keepDead: Duration.days(365), daysMax: null }
const day = Duration.toMillis(Duration.days(1))

describe("forgetting", () => {
  it.effect("goes on where each step ended, with pauses, by the time it began", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("30 days")
      const { asked, layer } = answering([
        { removed: 1_000, next: "a" },
        { removed: 0, next: "b" },
        { removed: 3, next: null }
      ])
      const pass = yield* Effect.forkChild(forgetEnded(week).pipe(Effect.provide(layer)))
      yield* TestClock.adjust("10 seconds")
      expect(yield* Fiber.join(pass)).toEqual({ messages: 1_003, events: 2, deeds: 1, destinations: 4, fronts: 7 })
      expect(asked.map(({ from }) => from)).toEqual([null, "a", "b"])
      expect(new Set(asked.map(({ endedBefore }) => endedBefore))).toEqual(new Set([23 * day]))
      expect(asked[1]!.at).toBeGreaterThan(asked[0]!.at)
      expect(Math.max(...asked.map(({ limit }) => limit))).toBeLessThanOrEqual(1_000)
    })
  )

  it.effect("keeps deeds as long as dead letters, for ever where those are kept for ever", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("400 days")
      const { deedsBefore, layer } = answering([])
      yield* forgetEnded(week).pipe(Effect.provide(layer))
      expect(deedsBefore).toEqual([35 * day])
      expect(yield* forgetEnded({ ...week, keepDead: null }).pipe(Effect.provide(layer))).toEqual({
        messages: 0,
        events: 2,
        deeds: 0,
        destinations: 0,
        fronts: 0
      })
      expect(deedsBefore).toEqual([35 * day])
    })
  )

  it.effect(
    "forgets removed destinations as late as dead letters, and never before what somebody has yet to read",
    () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("400 days")
        const { removedBefores, layer } = answering([])
        yield* Effect.gen(function* () {
          yield* forgetEnded(week)
          const noon = DateTime.makeUnsafe(20.5 * day)
          yield* (yield* Journals).append("circuit-x", 0, [{ name: "CircuitHeld@1", data: "{}" }], noon, null)
          yield* forgetEnded(week)
          expect(removedBefores).toEqual([35 * day, 20.5 * day - 60_000])
          // Lists have read it, alerting has not.
          const { head } = yield* (yield* EventStore).extent
          const live = (yield* (yield* Projections).runs).find(({ name }) => name === "messages")!
          const step = { generation: live.generation, from: live.position, to: head!, facts: 1 }
          expect(yield* (yield* MessageViews).project(step, [])).toBe(true)
          yield* forgetEnded(week)
          expect(removedBefores.at(-1)).toBe(20.5 * day - 60_000)
          const alerts = yield* AlertProgress
          expect(yield* alerts.advance(null, head!, [], noon)).toBe(true)
          yield* forgetEnded(week)
          expect(removedBefores.at(-1)).toBe(35 * day)
          // Whoever builds a projection anew begins at the first fact.
          yield* (yield* Projections).build("messages", 99, 1)
          yield* forgetEnded(week)
          expect(removedBefores.at(-1)).toBe(20.5 * day - 60_000)
          yield* forgetEnded({ ...week, keepDead: null })
          expect(removedBefores).toHaveLength(5)
        }).pipe(Effect.provide(layer))
      })
  )

  it.effect("is left to another process that is at it", () =>
    Effect.gen(function* () {
      const { asked, layer } = answering([null])
      expect(yield* forgetEnded(week).pipe(Effect.provide(layer))).toEqual({
        messages: 0,
        events: 2,
        deeds: 1,
        destinations: 4,
        fronts: 7
      })
      expect(asked).toHaveLength(1)
    })
  )

  it.effect("happens every hour, also after an hour in which the store was away", () =>
    Effect.gen(function* () {
      const { asked, layer } = answering(["unavailable"])
      yield* Effect.forkChild(retain(week).pipe(Effect.provide(layer)))
      yield* TestClock.adjust("30 minutes")
      expect(asked).toHaveLength(1)
      yield* TestClock.adjust("40 minutes")
      expect(asked).toHaveLength(2)
      yield* TestClock.adjust("1 hour")
      expect(asked).toHaveLength(3)
    })
  )
})
