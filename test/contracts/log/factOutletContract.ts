/** What every adapter of `FactOutletProgress` promises. `layer` gives an empty store to each test. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { FactOutletProgress } from "../../../src/application/ports/FactOutletProgress.ts"
import type { StorePorts } from "../sample.ts"

const LEASE = Duration.minutes(1)
const [A, B] = [randomUUID(), randomUUID()]

export const factOutletContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} progress of the facts that go out`, () => {
    test(
      "begins where it is told to, the first time, and never again",
      Effect.gen(function* () {
        const { begin, hold, advance } = yield* FactOutletProgress
        yield* begin("7")
        yield* begin(null)
        expect(yield* hold(A, LEASE)).toEqual({ position: "7" })
        expect(yield* advance(A, LEASE, "7", "9")).toBe(true)
        yield* begin("7")
        expect(yield* hold(A, LEASE)).toEqual({ position: "9" })
      })
    )

    test(
      "begins with the oldest fact, and that is remembered too",
      Effect.gen(function* () {
        const { begin, hold } = yield* FactOutletProgress
        yield* begin(null)
        yield* begin("7")
        expect(yield* hold(A, LEASE)).toEqual({ position: null })
      })
    )

    test(
      "moves from where it stands, by the one who holds it, and in no other way",
      Effect.gen(function* () {
        const { hold, advance } = yield* FactOutletProgress
        expect(yield* advance(A, LEASE, null, "1")).toBe(false)
        yield* hold(A, LEASE)
        expect(yield* advance(A, LEASE, "5", "9")).toBe(false)
        expect(yield* advance(B, LEASE, null, "9")).toBe(false)
        expect(yield* advance(A, LEASE, null, "5")).toBe(true)
        expect(yield* advance(A, LEASE, null, "9")).toBe(false)
        expect(yield* hold(A, LEASE)).toEqual({ position: "5" })
      })
    )

    test(
      "is held by one process at a time, and by another one when its lease is over",
      Effect.gen(function* () {
        const { hold, advance } = yield* FactOutletProgress
        const holders = Array.from({ length: 8 }, () => randomUUID())
        const held = yield* Effect.forEach(holders, (holder) => hold(holder, LEASE), { concurrency: 8 })
        expect(held.filter((one) => one !== null)).toHaveLength(1)
        const holder = holders[held.findIndex((one) => one !== null)]!
        // Its own moves renew its lease, or shorten it.
        expect(yield* advance(holder, Duration.millis(1), null, "5")).toBe(true)
        yield* Effect.sleep("50 millis")
        expect(yield* hold(A, LEASE)).toEqual({ position: "5" })
        expect(yield* hold(B, LEASE)).toBeNull()
      })
    )
  })
}
