import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { Freshness, readFreshness } from "../../../src/application/log/Freshness.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { opened, type Step, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const ports = () => Layer.provideMerge(Layer.mergeAll(LogReader.layer, Freshness.layer), Layer.fresh(MemoryPorts.layer))
const start = DateTime.makeUnsafe("2026-11-19T02:00:00Z")
const later = (seconds: number) => DateTime.add(start, { seconds })

const test = (rule: string, body: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof ports>>>) =>
  it.effect(rule, () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(DateTime.toEpochMillis(start))
      yield* Effect.provide(body, ports())
    })
  )

/** Stored at this time. */
const at = (time: DateTime.Utc, step: Step): Step => ({ ...step, entry: { ...step.entry, at: time } })

const nextSecond = TestClock.adjust("1 second")

describe("how far behind a projection is", () => {
  test(
    "is nothing in an empty store, and nothing for as long as nothing happens",
    Effect.gen(function* () {
      const freshness = yield* Freshness
      expect(yield* freshness.of("messages")).toEqual({ asOf: start, behindSeconds: 0 })
      yield* write(at(start, opened()))
      yield* projectOnce()
      yield* TestClock.adjust("3 days")
      expect(yield* freshness.of("health")).toEqual({ asOf: DateTime.add(start, { days: 3 }), behindSeconds: 0 })
    })
  )

  test(
    "grows from the first fact that nobody projects, and ends when it is projected",
    Effect.gen(function* () {
      const freshness = yield* Freshness
      yield* projectOnce()
      yield* TestClock.adjust("10 seconds")
      const queued = at(later(10), opened())
      yield* write(queued)
      yield* TestClock.adjust("60 seconds")
      yield* write(at(later(70), started(queued.after)))
      yield* TestClock.adjust("30 seconds")
      for (const name of ["messages", "health"] as const) {
        expect(yield* freshness.of(name), name).toEqual({ asOf: later(10), behindSeconds: 90 })
      }
      yield* projectOnce()
      yield* nextSecond
      expect(yield* freshness.of("messages")).toEqual({ asOf: later(101), behindSeconds: 0 })
    })
  )

  test(
    "is what was read at most a second ago, which the projection has never fallen behind since",
    Effect.gen(function* () {
      const freshness = yield* Freshness
      yield* write(at(start, opened()))
      yield* TestClock.adjust("4 seconds")
      const before = yield* freshness.of("messages")
      expect(before.behindSeconds).toBe(4)
      yield* projectOnce()
      yield* TestClock.adjust("999 millis")
      expect(yield* freshness.of("messages")).toEqual(before)
      expect((yield* readFreshness).get("messages")!.behindSeconds).toBe(0)
      yield* TestClock.adjust("1 millis")
      expect((yield* freshness.of("messages")).behindSeconds).toBe(0)
    })
  )

  test(
    "is no less than nothing for a fact of a clock that is ahead",
    Effect.gen(function* () {
      yield* write(at(later(5), opened()))
      expect((yield* readFreshness).get("messages")).toEqual({ asOf: start, behindSeconds: 0 })
      yield* TestClock.adjust(Duration.seconds(8))
      expect((yield* readFreshness).get("messages")).toEqual({ asOf: later(5), behindSeconds: 3 })
    })
  )
})
