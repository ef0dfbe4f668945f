/** Reading the feed is work that waits for its turn, piece by piece: subscribers far back in the log have thousands of facts to read. */
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe, expect } from "vitest"
import { type FeedFilter, readFeed } from "../../../src/application/log/feed.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { AT_ONCE, OwnTurn } from "../../../src/application/pieces.ts"
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
    const turn = { wait: () => Effect.sync(() => void told.push(0)), exceeded: () => {} }
    const tell = () => {
      told[told.length - 1]! += 1
    }
    yield* Effect.provideService(readFeed(orgId, filter, null, tell), OwnTurn, turn)
    return told
  }).pipe(Effect.provide(ports))

describe("reading the feed", () => {
  it.effect("waits for its turn before each piece", () =>
    Effect.gen(function* () {
      expect(yield* toldAfterTurns({})).toEqual([AT_ONCE, AT_ONCE, 60 - 2 * AT_ONCE])
    })
  )

  it.effect("waits for its turn also where nothing is found", () =>
    Effect.gen(function* () {
      expect(yield* toldAfterTurns({ type: "CircuitHeld" })).toEqual([0])
    })
  )
})
