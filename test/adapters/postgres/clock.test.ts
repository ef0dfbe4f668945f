/** The clock of a process over a database that is played: what it says, when it starts at all, and whose time it shows. */
import { expect, it } from "@effect/vitest"
import { Clock, Context, DateTime, Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Postgres, QueryFailed } from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresClock from "../../../src/adapters/postgres/PostgresClock.ts"
import { OwnClock } from "../../../src/application/ports/OwnClock.ts"

const SECOND = 1_000
const HOUR = 3_600 * SECOND

/** A machine whose wall clock is wrong by `wrongBy`, beside a database that is right. */
const world = (wrongBy: number) =>
  Effect.gen(function* () {
    const right = yield* Clock.Clock
    const state = { wrongBy, databaseBy: 0, isAway: false, asked: 0, waitsMs: 0 }
    const wall = () => right.currentTimeMillisUnsafe() + state.wrongBy
    const own: Clock.Clock = {
      ...right,
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      sleep: right.sleep,
      monotonicTimeNanosUnsafe: () => right.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: right.monotonicTimeNanos
    }
    const lookups = {
      rows: () =>
        Effect.suspend(() => {
          const waitsMs = state.waitsMs
          state.asked += 1
          state.waitsMs = 0
          if (state.isAway) return Effect.fail(new QueryFailed({ code: null, cause: new Error("away") }))
          const said = Effect.sync(() => [[String(right.currentTimeMillisUnsafe() + state.databaseBy)]])
          return waitsMs === 0 ? said : Effect.delay(said, waitsMs)
        })
    }
    const lines: Array<string> = []
    const layer = PostgresClock.layer.pipe(
      Layer.provide(Layer.succeed(Postgres, { lookups } as unknown as Postgres["Service"])),
      Layer.provide(Layer.succeed(Clock.Clock, own)),
      Layer.provide(Logger.layer([Logger.make(({ message }) => lines.push([message].flat().join(" ")))]))
    )
    const start = Effect.map(Layer.build(layer), (context) => ({
      shown: () => Context.get(context, Clock.Clock).currentTimeMillisUnsafe() - right.currentTimeMillisUnsafe(),
      offsetMs: Context.get(context, OwnClock).offsetMs
    }))
    return { state, lines, start }
  })

const ASKED = "11 seconds"

describe("the clock of a process", () => {
  it.effect("shows the database's time however wrong the machine is, also while the database is away", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(DateTime.makeUnsafe("2026-03-01T12:00:00Z").epochMilliseconds)
      const { state, start } = yield* world(-50 * 60 * SECOND)
      const { shown, offsetMs } = yield* start
      expect([shown(), offsetMs()]).toEqual([0, -50 * 60 * SECOND])
      // Somebody sets the wall clock while nobody can be asked.
      state.isAway = true
      state.wrongBy = 20 * 60 * SECOND
      yield* TestClock.adjust("1 hour")
      expect([shown(), offsetMs()]).toEqual([0, 20 * 60 * SECOND])
    })
  )

  it.effect("is right soon although its first question waited for a connection", () =>
    Effect.gen(function* () {
      const { state, start } = yield* world(0)
      state.waitsMs = 2 * SECOND
      const starting = yield* Effect.forkChild(start)
      yield* TestClock.adjust("2 seconds")
      const { shown } = yield* Fiber.join(starting)
      yield* TestClock.adjust("6 seconds")
      expect(shown()).toBe(0)
    })
  )

  it.effect("asks again every ten seconds, and goes with the database", () =>
    Effect.gen(function* () {
      const { state, start } = yield* world(0)
      const { shown } = yield* start
      const before = state.asked
      yield* TestClock.adjust("65 seconds")
      expect(state.asked).toBe(before + 6)
      state.databaseBy = 30 * SECOND
      yield* TestClock.adjust(ASKED)
      expect(shown()).toBe(30 * SECOND)
    })
  )

  for (const [side, sign] of [
    ["ahead of", 1],
    ["behind", -1]
  ] as const) {
    it.effect(`that is more than a second ${side} the database's says so once, and once that this is over`, () =>
      Effect.gen(function* () {
        const { state, lines, start } = yield* world(sign * 900)
        yield* start
        yield* TestClock.adjust(ASKED)
        expect(lines).toEqual([])
        state.wrongBy = sign * 3 * SECOND
        yield* TestClock.adjust("1 minute")
        expect(lines).toEqual([
          `the clock of this machine is 3 s ${side} the database's; Posthaste goes by the database's`
        ])
        state.wrongBy = 0
        yield* TestClock.adjust("1 minute")
        expect(lines.slice(1)).toEqual(["the clock of this machine agrees with the database's again"])
        state.wrongBy = sign * 150 * SECOND
        yield* TestClock.adjust(ASKED)
        expect(lines.slice(2)).toEqual([
          `the clock of this machine is 3 min ${side} the database's; Posthaste goes by the database's`
        ])
      })
    )

    it.effect(`does not start more than an hour ${side} the database's`, () =>
      Effect.gen(function* () {
        const near = yield* world(sign * (HOUR - SECOND))
        yield* near.start
        const far = yield* world(sign * (HOUR + 60 * SECOND))
        expect(yield* Effect.flip(far.start)).toMatchObject({
          _tag: "ClocksDisagree",
          message: `the clock of this machine is 61 min ${side} the database's: set the wrong one right, then start again`
        })
      })
    )
  }

  it.effect("does not believe a database that jumps by hours, says so once, and believes it when it is back", () =>
    Effect.gen(function* () {
      const { state, lines, start } = yield* world(0)
      const { shown } = yield* start
      state.databaseBy = 2 * HOUR
      yield* TestClock.adjust("1 minute")
      expect(shown()).toBe(0)
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatch(/the database says that it is \S+, more than an hour from what it said before/)
      state.databaseBy = 2 * SECOND
      yield* TestClock.adjust("1 minute")
      expect(shown()).toBe(2 * SECOND)
      state.databaseBy = -2 * HOUR
      yield* TestClock.adjust(ASKED)
      expect(lines.filter((line) => line.startsWith("the database says"))).toHaveLength(2)
    })
  )
})
