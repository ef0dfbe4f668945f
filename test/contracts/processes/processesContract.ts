/** What every adapter of `Processes` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type Figures, Processes, type Registration } from "../../../src/application/ports/Processes.ts"
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
    brokerAway: null,
    ...change
  })

  const listedAs = (id: string) => {
    const { brokerAway: _, ...listed } = given(id)
    return listed
  }

  describe(`${name} processes`, () => {
    test(
      "are listed as they describe themselves, the longest running first",
      Effect.gen(function* () {
        const processes = yield* Processes
        expect(yield* processes.list).toEqual([])
        const { at: first } = yield* processes.beat(given("a"))
        yield* Effect.sleep("5 millis")
        const { at: second } = yield* processes.beat(given("b", { roles: ["projector"], host: "shop-2", broker: true }))
        const listed = yield* processes.list
        expect(listed).toMatchObject([
          { ...listedAs("a"), alive: true },
          { ...listedAs("b"), roles: ["projector"], host: "shop-2", broker: true, alive: true }
        ])
        expect(Math.abs(DateTime.toEpochMillis(listed[0]!.lastSeen) - DateTime.toEpochMillis(first))).toBeLessThan(2)
        expect(DateTime.isLessThan(first, second)).toBe(true)
      })
    )

    test(
      "that register again are seen later, with their newest clock, since the same moment",
      Effect.gen(function* () {
        const processes = yield* Processes
        yield* processes.beat(given("a"))
        const [before] = yield* processes.list
        yield* Effect.sleep("5 millis")
        yield* processes.beat(given("a", { clockOffsetMs: -1_500 }))
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
        yield* processes.beat(given("a"))
        yield* processes.beat(given("b"))
        yield* processes.leave("a")
        yield* processes.leave("a")
        expect((yield* processes.list).map(({ id }) => id)).toEqual(["b"])
      })
    )

    test(
      "have one leader, the first, until it leaves",
      Effect.gen(function* () {
        const processes = yield* Processes
        const leads = (id: string) => Effect.map(processes.beat(given(id)), (beat) => beat.leads)
        expect([yield* leads("a"), yield* leads("b"), yield* leads("a")]).toEqual([true, false, true])
        yield* processes.leave("b")
        expect(yield* leads("c")).toBe(false)
        yield* processes.leave("a")
        expect([yield* leads("c"), yield* leads("a")]).toEqual([true, false])
      })
    )

    test(
      "are all shown the figures that the leader published, and no others",
      Effect.gen(function* () {
        const processes = yield* Processes
        const figures = (yield* processes.counts([])) as Figures
        const shown = (id: string) => Effect.map(processes.beat(given(id)), (beat) => beat.figures)
        expect(yield* shown("a")).toBeNull()
        yield* shown("b")
        yield* processes.publish("b", { ...figures, stallSeconds: 99 })
        expect(yield* shown("b")).toBeNull()
        yield* processes.publish("a", { ...figures, stallSeconds: 1 })
        expect([yield* shown("a"), yield* shown("b")]).toMatchObject([{ stallSeconds: 1 }, { stallSeconds: 1 }])
      })
    )

    test(
      "agree on whether the broker is reached: by one of them for all, and since when",
      Effect.gen(function* () {
        const processes = yield* Processes
        const report = (id: string, brokerAway: boolean) =>
          Effect.andThen(processes.beat(given(id, { brokerAway })), Effect.sleep("10 millis"))
        yield* processes.beat(given("a"))
        expect(yield* processes.brokerReach).toBeNull()
        yield* report("a", true)
        const lost = yield* processes.brokerReach
        yield* report("a", true)
        expect(yield* processes.brokerReach).toEqual(lost)
        expect(lost).toMatchObject({ away: true })
        yield* report("b", false)
        const reached = yield* processes.brokerReach
        expect(reached).toMatchObject({ away: false })
        expect(DateTime.isGreaterThan(reached!.since, lost!.since)).toBe(true)
        yield* report("b", true)
        const lostAgain = yield* processes.brokerReach
        expect(lostAgain).toMatchObject({ away: true })
        // Since the last one lost it.
        expect(DateTime.isGreaterThan(lostAgain!.since, reached!.since)).toBe(true)
      })
    )
  })
}
