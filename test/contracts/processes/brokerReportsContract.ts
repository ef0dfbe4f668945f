/** What every adapter of `BrokerReports` promises. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { BrokerReports } from "../../../src/application/ports/BrokerReports.ts"
import type { StorePorts } from "../sample.ts"

export const brokerReportsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const between = Effect.sleep("10 millis")
  const sinceOf = Effect.map(
    Effect.flatMap(BrokerReports, ({ reach }) => reach),
    (reach) => DateTime.toEpochMillis(reach!.since)
  )

  describe(`${name} reports of the broker`, () => {
    test(
      "say nothing where nobody reports",
      Effect.gen(function* () {
        expect(yield* (yield* BrokerReports).reach).toBeNull()
      })
    )

    test(
      "keep the time since when it has been so",
      Effect.gen(function* () {
        const { report, reach } = yield* BrokerReports
        yield* report("a", "facts", true)
        const since = yield* sinceOf
        yield* between
        yield* report("a", "facts", true)
        expect(yield* reach).toMatchObject({ away: true })
        expect(yield* sinceOf).toBe(since)
        yield* report("a", "facts", false)
        expect(yield* reach).toMatchObject({ away: false })
        expect(yield* sinceOf).toBeGreaterThan(since)
      })
    )

    test(
      "agree that the broker is there while one process reaches it",
      Effect.gen(function* () {
        const { report, reach } = yield* BrokerReports
        for (const process of ["a", "b"]) yield* report(process, "facts", false)
        const since = yield* sinceOf
        yield* between
        yield* report("a", "facts", true)
        expect(yield* reach).toMatchObject({ away: false })
        yield* between
        yield* report("b", "facts", true)
        expect(yield* reach).toMatchObject({ away: true })
        // Since the last one lost it.
        expect(yield* sinceOf).toBeGreaterThanOrEqual(since + 15)
      })
    )

    test(
      "say that it is away while there is something that nobody can do with it",
      Effect.gen(function* () {
        const { report, reach } = yield* BrokerReports
        yield* report("a", "commands", true)
        const since = yield* sinceOf
        yield* between
        yield* report("a", "facts", false)
        expect(yield* reach).toMatchObject({ away: true })
        expect(yield* sinceOf).toBe(since)
        yield* report("b", "commands", false)
        expect(yield* reach).toMatchObject({ away: false })
      })
    )
  })
}
