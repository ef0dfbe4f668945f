/** Refusals for asking too much: some are answered at once, the rest wait, and not too many of them. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { refuse, tooManyLists } from "../../../../src/adapters/http/server/problem.ts"
import { makeUnhurried, Unhurried } from "../../../../src/adapters/http/server/unhurried.ts"

const refusals = Effect.fnUntraced(function* (count: number) {
  let answered = 0
  const one = Effect.tap(refuse(tooManyLists(20)), ({ status }) =>
    Effect.sync(() => void (status === 429 && answered++))
  )
  for (let n = 0; n < count; n++) yield* Effect.forkChild(one, { startImmediately: true })
  return () => answered
})

describe("refusals for asking too much", () => {
  it.effect("are answered at once up to fifty a second, and later a second later", () =>
    Effect.gen(function* () {
      const answered = yield* refusals(60)
      expect(answered()).toBe(50)
      yield* TestClock.adjust("999 millis")
      expect(answered()).toBe(50)
      yield* TestClock.adjust("1 millis")
      expect(answered()).toBe(51)
      yield* TestClock.adjust("18 millis")
      expect(answered()).toBe(60)
      expect((yield* refusals(50))()).toBe(50)
    }).pipe(Effect.provideService(Unhurried, makeUnhurried()))
  )

  it.effect("that waited together are answered one after the other, two milliseconds apart", () =>
    Effect.gen(function* () {
      const answered = yield* refusals(250)
      yield* TestClock.adjust("1000 millis")
      expect(answered()).toBe(51)
      yield* TestClock.adjust("2 millis")
      expect(answered()).toBe(52)
      yield* TestClock.adjust("98 millis")
      expect(answered()).toBe(101)
      yield* TestClock.adjust("298 millis")
      expect(answered()).toBe(250)
    }).pipe(Effect.provideService(Unhurried, makeUnhurried()))
  )

  it.effect("hold a thousand connections at most", () =>
    Effect.gen(function* () {
      expect((yield* refusals(1_060))()).toBe(60)
    }).pipe(Effect.provideService(Unhurried, makeUnhurried()))
  )
})
