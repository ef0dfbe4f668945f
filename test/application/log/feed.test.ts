/** Reading the feed is work that waits for its turn, piece by piece: subscribers far back in the log have thousands of facts to read. */
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe, expect } from "vitest"
import { type FeedFilter, PIECE_OF_FACTS, readFeed } from "../../../src/application/log/feed.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { newOrg, opened } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const ports = Layer.provideMerge(Layer.fresh(LogReader.layer), MemoryPorts.layer)

/** How many facts of the org's 60 were told after each turn. */
const toldAfterTurns = (filter: FeedFilter) =>
  Effect.gen(function* () {
    const orgId = newOrg()
    yield* write(...Array.from({ length: 60 }, () => opened({ orgId })))
    const told: Array<number> = []
    const turn = Effect.sync(() => void told.push(0))
    const tell = () => {
      told[told.length - 1]! += 1
    }
    yield* readFeed(orgId, filter, null, turn, tell)
    return told
  }).pipe(Effect.provide(ports))

describe("reading the feed", () => {
  it.effect("waits for its turn before each piece", () =>
    Effect.gen(function* () {
      expect(yield* toldAfterTurns({})).toEqual([PIECE_OF_FACTS, PIECE_OF_FACTS, 60 - 2 * PIECE_OF_FACTS])
    })
  )

  it.effect("waits for its turn also where nothing is found", () =>
    Effect.gen(function* () {
      expect(yield* toldAfterTurns({ type: "CircuitHeld" })).toEqual([0])
    })
  )
})
