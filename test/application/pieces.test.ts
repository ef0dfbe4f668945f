/** What is done in pieces: no piece is larger than a turn of the loop has room for. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { AT_ONCE, BYTES_AT_ONCE, inPieces, mapInPieces, OwnTurn } from "../../src/application/pieces.ts"

/** How much was done in each turn, what was waited for, and how much more it was than was waited for. */
const watched = () => {
  const pieces: Array<number> = []
  const shares: Array<number> = []
  const excess: Array<number> = []
  return {
    ...{ pieces, shares, excess },
    did: () => {
      pieces[pieces.length - 1]! += 1
    },
    turn: {
      wait: (share: number) =>
        Effect.sync(() => {
          pieces.push(0)
          shares.push(share)
        }),
      exceeded: (share: number) => {
        excess.push(share)
      }
    }
  }
}

const done = (count: number, bytes: number) =>
  Effect.gen(function* () {
    const { turn, did, ...seen } = watched()
    const work = inPieces(count, () => {
      did()
      return Result.succeed(bytes)
    })
    yield* Effect.provideService(work, OwnTurn, turn)
    return seen
  })

describe("work in pieces", () => {
  it.effect("is so many things in a turn, and the rest takes up as much less of one", () =>
    Effect.gen(function* () {
      const { pieces, shares, excess } = yield* done(2 * AT_ONCE + 5, 100)
      expect(pieces).toEqual([AT_ONCE, AT_ONCE, 5])
      expect(shares).toEqual([1, 1, 5 / AT_ONCE])
      expect(excess).toEqual([])
    })
  )

  it.effect("is so many bytes in a turn, where things are large", () =>
    Effect.gen(function* () {
      const { pieces } = yield* done(AT_ONCE, BYTES_AT_ONCE / 4)
      expect(pieces).toEqual([4, 4, 4, 4, 4, 4, 1])
    })
  )

  it.effect("counts for what it was, where that is more than was waited for", () =>
    Effect.gen(function* () {
      const { pieces, shares, excess } = yield* done(2, 3 * BYTES_AT_ONCE)
      expect(pieces).toEqual([1, 1])
      expect(shares.map((share, nth) => share + excess[nth]!)).toEqual([3, 3])
    })
  )

  it.effect("ends where a part of it fails", () =>
    Effect.gen(function* () {
      let begun = 0
      const failing = inPieces(10, (index) => {
        begun += 1
        return index === 3 ? Result.fail("wrong") : Result.succeed(0)
      })
      expect(yield* Effect.flip(failing)).toBe("wrong")
      expect(begun).toBe(4)
    })
  )

  it.effect("makes each thing, in order", () =>
    Effect.gen(function* () {
      const all = Array.from({ length: 3 * AT_ONCE + 1 }, (_, n) => n)
      expect(yield* mapInPieces(all, (n) => 2 * n)).toEqual(all.map((n) => 2 * n))
    })
  )
})
