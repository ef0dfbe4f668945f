import { it } from "@effect/vitest"
import { Clock, Effect, Fiber, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { background } from "../../src/application/background.ts"
import { StoreUnavailable } from "../../src/application/ports/errors.ts"

const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))

/** Runs the steps one after the other, the last of them for ever; answers when each began, and the log lines. */
const running = (steps: ReadonlyArray<Effect.Effect<unknown, StoreUnavailable>>) =>
  Effect.gen(function* () {
    const begun: Array<number> = []
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${Array.isArray(message) ? message[0] : message}`)
    })
    const step = Effect.flatMap(Clock.currentTimeMillis, (now) => steps[begun.push(now) - 1]!)
    const loop = yield* Effect.forkChild(
      background("counting", step, "1 second").pipe(
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(References.MinimumLogLevel, "Info")
      )
    )
    for (let second = 0; second < 5; second++) {
      // The loop lets others go first between its steps.
      for (const _ of steps) yield* Effect.yieldNow
      yield* TestClock.adjust("1 second")
    }
    yield* Fiber.interrupt(loop)
    return { begun, lines }
  })

describe("a background loop", () => {
  it.effect("goes on while the store does not answer, and warns once each time that begins", () =>
    Effect.gen(function* () {
      const { begun, lines } = yield* running([away, away, Effect.void, away, Effect.never])
      expect(begun).toHaveLength(5)
      expect(lines).toEqual(["Warn counting waits for the store", "Warn counting waits for the store"])
    })
  )

  it.effect("goes on after a defect, and logs each", () =>
    Effect.gen(function* () {
      const { begun, lines } = yield* running([Effect.die("broken"), Effect.die("broken"), Effect.never])
      expect(begun).toHaveLength(3)
      expect(lines).toEqual(["Error counting failed", "Error counting failed"])
    })
  )

  it.effect("pauses after a failure and not after a step", () =>
    Effect.gen(function* () {
      const { begun } = yield* running([Effect.void, away, Effect.void, Effect.die("broken"), Effect.never])
      expect(begun).toEqual([0, 0, 1000, 1000, 2000])
    })
  )
})
