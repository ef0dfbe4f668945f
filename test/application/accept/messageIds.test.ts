import { describe, expect, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import { newMessageIds } from "../../../src/application/messageIds.ts"

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe("new ids", () => {
  it.effect("are UUIDs of version 7 that begin with the time", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1))
      const ids = yield* newMessageIds(1000)
      for (const id of ids) expect(id).toMatch(version7)
      expect(Number.parseInt(ids[0]!.replace("-", "").slice(0, 12), 16)).toBe(Date.UTC(2026, 0, 1))
    })
  )

  it.effect("made together sort in the order they were asked for, up to 4,096 of them", () =>
    Effect.gen(function* () {
      const ids = yield* newMessageIds(4096)
      expect([...ids].sort()).toEqual(ids)
      expect(new Set(ids).size).toBe(4096)
    })
  )

  it.effect("made later sort later", () =>
    Effect.gen(function* () {
      const [early] = yield* newMessageIds(1)
      yield* TestClock.adjust("1 millis")
      const [late] = yield* newMessageIds(1)
      expect(late! > early!).toBe(true)
    })
  )

  it.effect("are the same for the same seed and time, and differ otherwise", () =>
    Effect.gen(function* () {
      const seeded = (seed: string) => newMessageIds(3).pipe(Random.withSeed(seed))
      expect(yield* seeded("a")).toEqual(yield* seeded("a"))
      expect(yield* seeded("a")).not.toEqual(yield* seeded("b"))
    })
  )

  it.effect("use every bit they have for chance", () =>
    Effect.gen(function* () {
      const ids = yield* Effect.forEach(Array.from({ length: 500 }), () => Effect.map(newMessageIds(1), ([id]) => id!))
      for (const place of [15, 16, 17, 19, 20, 24, 30, 35]) {
        expect(new Set(ids.map((id) => id[place])).size, `digit ${place}`).toBe(place === 19 ? 4 : 16)
      }
    })
  )
})
