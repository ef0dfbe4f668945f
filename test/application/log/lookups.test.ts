/** What is remembered of the streams of messages, and what the store is asked for again. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { streamsOf } from "../../../src/application/log/lookups.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { ended } from "../../contracts/replays/deadLetterSamples.ts"
import { delivered, inMillis, opened, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const ROOM = 10

/** With room for ten streams, and how many were asked for from the store. */
const memory = Effect.gen(function* () {
  const store = yield* EventStore
  let asked = 0
  const loadMany: EventStore["Service"]["loadMany"] = (ids) => {
    asked += ids.length
    return store.loadMany(ids)
  }
  const { histories } = streamsOf({ ...store, loadMany }, ROOM)
  let position: string | null = null
  /** Reads what is new, as one page. */
  const read = Effect.gen(function* () {
    const page = yield* store.readAll(position, 1_000)
    position = page.at(-1)!.position
    return { page, streams: yield* histories(page) }
  })
  return { read, histories, asked: () => asked }
})

const waiting = (count: number) => Array.from({ length: count }, () => opened())

describe("the memory of streams", () => {
  it.effect("has those that wait, however many have ended since", () =>
    Effect.gen(function* () {
      const { read, asked } = yield* memory
      const samples = waiting(ROOM - 3)
      yield* write(...samples)
      yield* read
      for (let i = 0; i < 3 * ROOM; i++) yield* ended(delivered, inMillis(0))
      yield* read
      yield* write(...samples.map(({ after }) => started(after)))
      const { streams } = yield* read
      expect(samples.map(({ after }) => streams.get(after.id)?.length)).toEqual(samples.map(() => 2))
      expect(asked()).toBe(0)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("has the last that ended, for a reader that is a little behind, however many wait", () =>
    Effect.gen(function* () {
      const { read, histories, asked } = yield* memory
      yield* write(...waiting(3 * ROOM))
      yield* read
      yield* ended(delivered, inMillis(0))
      yield* ended(delivered, inMillis(0))
      const { page } = yield* read
      yield* write(...waiting(3 * ROOM))
      yield* read
      yield* histories(page.filter(({ version }) => version > 1))
      expect(asked()).toBe(0)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is bounded: of more that wait, those that came first are asked for again", () =>
    Effect.gen(function* () {
      const { read, asked } = yield* memory
      const samples = waiting(ROOM + 5)
      yield* write(...samples)
      yield* read
      yield* write(...samples.map(({ after }) => started(after)))
      const { streams } = yield* read
      expect(samples.map(({ after }) => streams.get(after.id)?.length)).toEqual(samples.map(() => 2))
      expect(asked()).toBe(5)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
