/** What an org sends in batches leaves others eight times as much time as it takes, while there are others. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makePace } from "../../../../src/adapters/http/server/pace.ts"
import { makeAskers } from "../../../../src/application/askers.ts"

const TAKES_MS = 20

/** When each of so many pieces of an org began, in milliseconds; all are there at once. */
const begun = Effect.fnUntraced(function* (pace: ReturnType<typeof makePace>, org: string, count: number) {
  const at: Array<number> = []
  const piece = Effect.andThen(
    Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => at.push(now))),
    Effect.sleep(TAKES_MS)
  )
  for (let n = 0; n < count; n++) {
    yield* Effect.forkChild(pace.paced(org, piece), { startImmediately: true })
    yield* TestClock.adjust(TAKES_MS)
  }
  yield* TestClock.adjust("10 seconds")
  return at
})

const monotonicNow = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

describe("batches of an org", () => {
  it.effect("follow each other at once while it asks alone", () =>
    Effect.gen(function* () {
      const askers = makeAskers()
      const pace = makePace(askers)
      for (const org of ["a", "a"]) askers.asked(org, yield* monotonicNow)
      expect(yield* begun(pace, "a", 4)).toEqual([0, 20, 40, 60])
    })
  )

  it.effect(
    "leave eight times as much time as they take while another org asks, and hold up nothing of the other's",
    () =>
      Effect.gen(function* () {
        const askers = makeAskers()
        const pace = makePace(askers)
        for (const org of ["a", "b"]) askers.asked(org, yield* monotonicNow)
        const [first, second, third] = yield* begun(pace, "a", 3)
        expect([second! - first!, third! - second!]).toEqual([45, 9 * TAKES_MS])
        const from = yield* Clock.currentTimeMillis
        for (const org of ["a", "b"]) askers.asked(org, yield* monotonicNow)
        expect(yield* begun(pace, "b", 1)).toEqual([from])
      })
  )

  it.effect("share that pause with those of other orgs, while these send some", () =>
    Effect.gen(function* () {
      const askers = makeAskers()
      const pace = makePace(askers)
      const lastPause = Effect.gen(function* () {
        for (const org of ["a", "b"]) askers.asked(org, yield* monotonicNow)
        const [_first, second, third] = yield* begun(pace, "a", 3)
        return third! - second!
      })
      expect(yield* lastPause).toBe(9 * TAKES_MS)
      yield* pace.paced("b", Effect.void)
      expect(yield* lastPause).toBe(5 * TAKES_MS)
      expect(yield* lastPause).toBe(9 * TAKES_MS)
    })
  )

  it.effect("wait for each other also where they come at the same time", () =>
    Effect.gen(function* () {
      const askers = makeAskers()
      const pace = makePace(askers)
      for (const org of ["a", "b"]) askers.asked(org, yield* monotonicNow)
      const at: Array<number> = []
      const piece = Effect.andThen(
        Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => at.push(now))),
        Effect.sleep("5 millis")
      )
      for (let n = 0; n < 3; n++) yield* Effect.forkChild(pace.paced("a", piece), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      expect(at).toEqual([0, 45, 90])
    })
  )

  it.effect(
    "wait no more than a second for one that took long, and as long for one that failed as for one that did not",
    () =>
      Effect.gen(function* () {
        const askers = makeAskers()
        const pace = makePace(askers)
        const waited = Effect.fnUntraced(function* (before: Effect.Effect<void, string>) {
          yield* Effect.forkChild(Effect.ignore(pace.paced("a", before)), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          for (const org of ["a", "b"]) askers.asked(org, yield* monotonicNow)
          yield* pace.paced("a", Effect.void)
          const from = yield* Clock.currentTimeMillis
          const next = yield* Effect.forkChild(pace.paced("a", Clock.currentTimeMillis), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          return (yield* Fiber.join(next)) - from
        })
        expect(yield* waited(Effect.sleep("30 seconds"))).toBe(1_350)
        expect(yield* waited(Effect.andThen(Effect.sleep("100 millis"), Effect.fail("no")))).toBe(900)
      })
  )
})
