import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { command, type Patience, storePauses } from "../../src/application/command.ts"
import { StoreUnavailable } from "../../src/application/ports/errors.ts"

type Result = "Appended" | "VersionConflict" | "FenceLost"
const away = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))

/** A command whose state is how often it was loaded, and whose appends are answered one after the other. */
const counting = (
  appends: ReadonlyArray<Effect.Effect<Result, StoreUnavailable>>,
  patience: Patience,
  known: number | null = null
) => {
  const decidedOn: Array<number> = []
  let loads = 0
  let tries = 0
  const run = command(
    {
      known,
      load: Effect.sync(() => ++loads),
      decide: (state: number) =>
        Effect.sync(() => {
          decidedOn.push(state)
          return { entry: state, answer: `decided on ${state}` }
        }),
      append: () =>
        Effect.suspend(() => Effect.map(appends[tries++] ?? Effect.succeed("Appended"), (type) => ({ type })))
    },
    patience
  )
  return { run, decidedOn }
}

const conflict = Effect.succeed("VersionConflict" as const)

describe("a command", () => {
  it.effect("starts from the state its caller knows", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting([], { tries: 1 }, 7)
      expect(yield* run).toBe("decided on 7")
      expect(decidedOn).toEqual([7])
    })
  )

  it.effect("loads and decides again when another writer was first", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting([conflict, conflict], { tries: 3 }, 7)
      expect(yield* run).toBe("decided on 2")
      expect(decidedOn).toEqual([7, 1, 2])
    })
  )

  it.effect("is overtaken when another writer was first each time", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting([conflict, conflict], { tries: 2 })
      expect((yield* Effect.flip(run))._tag).toBe("Overtaken")
      expect(decidedOn).toHaveLength(2)
    })
  )

  it.effect("answers any other refusal", () =>
    Effect.gen(function* () {
      const { run } = counting([Effect.succeed("FenceLost")], { tries: 9 })
      expect(yield* run).toEqual({ type: "FenceLost" })
    })
  )

  it.effect("leaves a store that does not answer to its caller, unless told to go on", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting([away], { tries: 9 })
      expect((yield* Effect.flip(run))._tag).toBe("StoreUnavailable")
      expect(decidedOn).toHaveLength(1)
    })
  )

  it.effect("loads again when the store did not say whether it had appended, with growing pauses", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting(
        [away, away, away, away],
        { tries: 1, unavailable: { schedule: storePauses, while: () => true } },
        7
      )
      const fiber = yield* Effect.forkChild(run)
      yield* TestClock.adjust("349 millis")
      expect(decidedOn).toEqual([7, 1, 2, 3])
      yield* TestClock.adjust("1 millis")
      expect(yield* Fiber.join(fiber)).toBe("decided on 4")
    })
  )

  it.effect("gives up on a store that does not answer when it may not go on", () =>
    Effect.gen(function* () {
      const { run, decidedOn } = counting([away, away], {
        tries: 1,
        unavailable: { schedule: storePauses, while: () => false }
      })
      expect((yield* Effect.flip(run))._tag).toBe("StoreUnavailable")
      expect(decidedOn).toHaveLength(2)
    })
  )
})
