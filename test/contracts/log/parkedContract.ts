/** What every adapter promises about parked streams. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Parked } from "../../../src/application/ports/Parked.ts"
import type { StorePorts } from "../sample.ts"

export const parkedContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  describe(`${name}: parked streams`, () => {
    it.live("are named once, listed by stream, page by page", () =>
      Effect.gen(function* () {
        const { park, list } = yield* Parked
        expect(yield* park(new Map())).toEqual([])
        expect(yield* park(new Map([["circuit-b", "failed"]]))).toEqual(["circuit-b"])
        const both = new Map([
          ["circuit-b", "unreadable"],
          ["circuit-a", "unreadable"]
        ] as const)
        expect(yield* park(both)).toEqual(["circuit-a"])
        const { items, nextCursor } = yield* list({ cursor: null, limit: 1 })
        expect(items).toMatchObject([{ stream: "circuit-a", reason: "unreadable" }])
        const rest = yield* list({ cursor: nextCursor, limit: 1 })
        expect(rest).toMatchObject({ items: [{ stream: "circuit-b", reason: "failed" }], nextCursor: null })
      }).pipe(Effect.provide(layer))
    )
  })
}
