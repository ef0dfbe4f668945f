/** What every adapter of `Processes` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { Processes, type Registration } from "../../../src/application/ports/Processes.ts"
import type { StorePorts } from "../sample.ts"

export const processesContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  const given = (id: string, change: Partial<Registration> = {}): Registration => ({
    id,
    host: "shop-1",
    pid: 17,
    roles: ["api", "worker"],
    version: "1.2.3",
    clockOffsetMs: null,
    broker: false,
    ...change
  })

  describe(`${name} processes`, () => {
    test(
      "are listed as they describe themselves, the longest running first",
      Effect.gen(function* () {
        const processes = yield* Processes
        expect(yield* processes.list).toEqual([])
        const first = yield* processes.register(given("a"))
        yield* Effect.sleep("5 millis")
        const second = yield* processes.register(given("b", { roles: ["projector"], host: "shop-2", broker: true }))
        const listed = yield* processes.list
        expect(listed).toMatchObject([
          { ...given("a"), alive: true },
          { ...given("b"), roles: ["projector"], host: "shop-2", broker: true, alive: true }
        ])
        expect(Math.abs(DateTime.toEpochMillis(listed[0]!.lastSeen) - DateTime.toEpochMillis(first))).toBeLessThan(2)
        expect(DateTime.isLessThan(first, second)).toBe(true)
      })
    )

    test(
      "that register again are seen later, with their newest clock, since the same moment",
      Effect.gen(function* () {
        const processes = yield* Processes
        yield* processes.register(given("a"))
        const [before] = yield* processes.list
        yield* Effect.sleep("5 millis")
        yield* processes.register(given("a", { clockOffsetMs: -1_500 }))
        const [after, ...others] = yield* processes.list
        expect(others).toEqual([])
        expect(after).toMatchObject({ since: before!.since, clockOffsetMs: -1_500 })
        expect(DateTime.isLessThan(before!.lastSeen, after!.lastSeen)).toBe(true)
      })
    )

    test(
      "that leave are listed no more, and only they",
      Effect.gen(function* () {
        const processes = yield* Processes
        yield* processes.register(given("a"))
        yield* processes.register(given("b"))
        yield* processes.leave("a")
        yield* processes.leave("a")
        expect((yield* processes.list).map(({ id }) => id)).toEqual(["b"])
      })
    )
  })
}
