import { it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { describe, expect } from "vitest"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresReadings from "../../../src/adapters/postgres/readings/PostgresReadings.ts"
import { Readings, type SharedReadings } from "../../../src/application/ports/Readings.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const readings: SharedReadings = {
  ...{ waiting: { webhook: 3 }, oldestDueSeconds: 1.5, circuits: { open: 1 }, destinations: {}, refusedCommands: 2 },
  ...{ projectionLagSeconds: { audit: 2 }, stallSeconds: 0, brokerAway: false }
}

describe("the figures of the installation", () => {
  it.live("are read by one process at a time, and by another one when its turn is over", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* Effect.gen(function* () {
        const { takeTurn, share, shared, counts } = yield* Readings
        expect(yield* shared).toMatchObject({ readings: null })
        expect(yield* takeTurn("one", Duration.minutes(1))).toBe(true)
        expect(yield* takeTurn("other", Duration.minutes(1))).toBe(false)
        expect(yield* takeTurn("one", Duration.millis(1))).toBe(true)
        yield* share("one", readings)
        expect((yield* shared).readings).toEqual(readings)
        yield* Effect.sleep("20 millis")
        expect(yield* takeTurn("other", Duration.minutes(1))).toBe(true)
        // The one whose turn is over shares no more.
        yield* share("one", { ...readings, stallSeconds: 99 })
        expect((yield* shared).readings).toEqual(readings)
        expect(yield* counts([])).toEqual({
          ...{ waiting: {}, oldestDueSeconds: 0, circuits: {}, destinations: {} },
          ...{ refusedCommands: 0, setAside: 0 }
        })
      }).pipe(Effect.provide(PostgresReadings.layer.pipe(Layer.provide(Postgres.layer({ url })))))
    })
  )
})
