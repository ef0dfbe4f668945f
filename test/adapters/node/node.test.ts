import { describe, expect, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import * as NodeRandom from "../../../src/adapters/node/NodeRandom.ts"
import { Fingerprint } from "../../../src/application/ports/Fingerprint.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"

describe("a fingerprint", () => {
  it.effect("is SHA-256 over UTF-8, as hex", () =>
    Effect.gen(function* () {
      const { of } = yield* Fingerprint
      // The digests FIPS 180-4 and a UTF-8 text have had ever since.
      expect(of("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      expect(of("ü")).not.toBe(of("u"))
    }).pipe(Effect.provide(Fingerprints.layer))
  )
})

describe("the operating system's dice", () => {
  it.effect("fall evenly in [0, 1)", () =>
    Effect.gen(function* () {
      const falls = yield* Effect.forEach(Array.from({ length: 20_000 }), () => Random.next)
      expect(falls.every((fall) => fall >= 0 && fall < 1)).toBe(true)
      expect(new Set(falls).size).toBe(20_000)
      const tenths = falls.reduce(
        (counts, fall) => counts.with(Math.floor(fall * 10), counts[Math.floor(fall * 10)]! + 1),
        Array<number>(10).fill(0)
      )
      // Ten standard deviations: fails for loaded dice, not for bad luck.
      for (const count of tenths) expect(Math.abs(count - 2000)).toBeLessThan(430)
    }).pipe(Effect.provide(NodeRandom.layer))
  )

  it.effect("give whole numbers of either sign", () =>
    Effect.gen(function* () {
      const falls = yield* Effect.forEach(Array.from({ length: 200 }), () => Random.nextInt)
      expect(falls.every(Number.isSafeInteger)).toBe(true)
      expect(falls.some((fall) => fall < 0) && falls.some((fall) => fall > 0)).toBe(true)
      expect(falls.some((fall) => fall % 2 !== 0)).toBe(true)
    }).pipe(Effect.provide(NodeRandom.layer))
  )
})
