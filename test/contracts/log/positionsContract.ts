/** What every adapter of `Followers` promises. `layer` gives an empty store to each test. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Followers, type Notice } from "../../../src/application/ports/Followers.ts"
import { newLane, type StorePorts } from "../sample.ts"

const LEASE = Duration.minutes(1)
const at = (millis: number) => DateTime.makeUnsafe(millis)

export const positionsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} followers`, () => {
    test(
      "begin where they are told to, the first time, and never again",
      Effect.gen(function* () {
        const { begin, position, advance } = yield* Followers
        yield* begin("facts", "7")
        yield* begin("facts", null)
        expect(yield* position("facts")).toBe("7")
        expect(yield* advance("facts", "7", "9")).toBe(true)
        yield* begin("facts", "7")
        expect([yield* position("facts"), yield* position("alerts")]).toEqual(["9", null])
      })
    )

    test(
      "move from where they stand, by one of many",
      Effect.gen(function* () {
        const { advance, position } = yield* Followers
        expect(yield* advance("alerts", "5", "9")).toBe(false)
        const moves = Array.from({ length: 8 }, (_, n) => advance("alerts", null, `${n}`))
        expect((yield* Effect.all(moves, { concurrency: 8 })).filter((moved) => moved)).toHaveLength(1)
        expect(yield* advance("alerts", null, "9")).toBe(false)
        expect(yield* advance("alerts", yield* position("alerts"), "9")).toBe(true)
      })
    )

    test(
      "are held by one process at a time, and by another one when its lease is over",
      Effect.gen(function* () {
        const { hold } = yield* Followers
        const holders = Array.from({ length: 8 }, () => randomUUID())
        const held = yield* Effect.forEach(holders, (holder) => hold("facts", holder, LEASE), { concurrency: 8 })
        expect(held.filter((one) => one)).toHaveLength(1)
        expect(yield* hold("alerts", holders[0]!, LEASE)).toBe(true)
        const holder = holders[held.indexOf(true)]!
        expect(yield* hold("facts", holder, Duration.millis(1))).toBe(true)
        yield* Effect.sleep("50 millis")
        const [one, other] = [randomUUID(), randomUUID()]
        expect([yield* hold("facts", one, LEASE), yield* hold("facts", other, LEASE)]).toEqual([true, false])
      })
    )

    test(
      "keep the last notice of each pair, until it is old",
      Effect.gen(function* () {
        const { note, notices } = yield* Followers
        const a: Notice = { target: newLane(), destination: newLane(), at: at(1) }
        const b = { ...a, target: newLane(), at: at(5) }
        const c = { target: newLane(), destination: newLane(), at: at(9) }
        const later = { ...a, at: at(3) }
        yield* note([a, b, c], at(0))
        yield* note([later], at(0))
        const byAt = (some: ReadonlyArray<Notice>) => some.toSorted((x, y) => DateTime.Order(x.at, y.at))
        expect(byAt(yield* notices([a.destination]))).toEqual([later, b])
        expect(byAt(yield* notices([c.destination, a.destination]))).toEqual([later, b, c])
        expect(yield* notices([newLane()])).toEqual([])
        yield* note([], at(5))
        expect(byAt(yield* notices([c.destination, a.destination]))).toEqual([b, c])
      })
    )
  })
}
