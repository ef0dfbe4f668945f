import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeDeadlines } from "../../../../src/adapters/channels/net/tries.ts"

const NANOS_PER_MILLI = 1_000_000n

const setUp = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const ended: Array<string> = []
  const deadlines = yield* makeDeadlines<{ name: string; expired: (now: bigint) => boolean }>(clock, ({ name }) =>
    ended.push(name)
  )
  const watch = (name: string, afterMs: number) => {
    const at = clock.monotonicTimeNanosUnsafe() + BigInt(afterMs) * NANOS_PER_MILLI
    const one = { name, expired: (now: bigint) => now >= at }
    deadlines.watch(one)
    return one
  }
  return { deadlines, watch, ended }
})

describe("a deadline", () => {
  it.effect("is met within a tick, never early, and once", () =>
    Effect.gen(function* () {
      const { watch, ended } = yield* setUp
      watch("a", 100)
      yield* TestClock.adjust("99 millis")
      expect(ended).toEqual([])
      yield* TestClock.adjust("26 millis")
      expect(ended).toEqual(["a"])
      yield* TestClock.adjust("1 minute")
      expect(ended).toEqual(["a"])
    })
  )

  it.effect("is not met by what was forgotten", () =>
    Effect.gen(function* () {
      const { deadlines, watch, ended } = yield* setUp
      deadlines.forget(watch("a", 100))
      watch("b", 200)
      yield* TestClock.adjust("1 second")
      expect(ended).toEqual(["b"])
    })
  )

  it.effect("is met again after a time without any", () =>
    Effect.gen(function* () {
      const { watch, ended } = yield* setUp
      watch("a", 100)
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("1 hour")
      watch("b", 100)
      yield* TestClock.adjust("1 second")
      expect(ended).toEqual(["a", "b"])
    })
  )

  it.effect("that many meet at once ends the youngest first, so that none inherits what another held", () =>
    Effect.gen(function* () {
      const { watch, ended } = yield* setUp
      for (const name of ["first", "second", "third"]) watch(name, 100)
      yield* TestClock.adjust("1 second")
      expect(ended).toEqual(["third", "second", "first"])
    })
  )
})
