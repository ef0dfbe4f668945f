/**
 * A lane that hands out many messages is visited without being written: what a row was stays behind for as long as anybody's
 * transaction is open, and everybody who looks the row up walks over it. It still sleeps when it has nothing, and takes turns.
 */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import type { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import type { DestinationId } from "../../../../src/domain/ids.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { newLane } from "../../../contracts/sample.ts"
import { put } from "../../../contracts/written.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

interface LaneRow {
  /** Where its newest version is: another one with each write. */
  readonly ctid: string
  readonly asleep: boolean
}

const test = (
  rule: string,
  body: (row: (lane: DestinationId) => Promise<LaneRow>) => Effect.Effect<void, unknown, EventStore | Queue>
) =>
  it.live(rule, () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
      yield* Effect.acquireRelease(
        Effect.promise(() => client.connect()),
        () => Effect.promise(() => client.end())
      )
      const row = async (lane: DestinationId) =>
        (
          await client.query<LaneRow>(
            "select ctid::text, next_claim_at = 'infinity' as asleep from lane where lane = $1",
            [lane]
          )
        ).rows[0]!
      yield* Effect.provide(body(row), PostgresPorts.layer({ url, encryptionKey }))
    })
  )

const send = (lane: DestinationId, count: number) => put(Array.from({ length: count }, () => ({ destination: lane })))

/** How many messages each lane gave. */
const claim = Effect.fnUntraced(function* (limit: number) {
  const queue = yield* Queue
  const claimed = yield* queue.claim({ ...asWorker("one"), limit })
  if (claimed !== null) yield* queue.release(claimed.batch, [])
  return new Map(
    [...Map.groupBy(claimed?.messages ?? [], ({ lane }) => lane)].map(([lane, { length }]) => [lane, length])
  )
})

describe("a busy lane", () => {
  test("is written once a second at most by those who bring messages and those who take them", (row) =>
    Effect.gen(function* () {
      const lane = newLane()
      yield* send(lane, 8)
      const written = new Set<string>()
      const began = performance.now()
      for (let round = 0; round < 20; round++) {
        expect((yield* claim(100)).get(lane)).toBe(8)
        yield* send(lane, 8)
        const { ctid, asleep } = yield* Effect.promise(() => row(lane))
        written.add(ctid)
        expect(asleep).toBe(false)
      }
      expect(written.size).toBeLessThanOrEqual(2 + (performance.now() - began) / 1_000)
    }))

  test("goes to sleep when it has had nothing for a while, and is woken by the next message", (row) =>
    Effect.gen(function* () {
      const [busy, quiet] = [newLane(), newLane()]
      yield* send(busy, 8)
      yield* send(quiet, 1)
      yield* claim(100)
      // One message a time is no reason to stay awake.
      expect((yield* Effect.promise(() => row(quiet))).asleep).toBe(true)
      const services = yield* Effect.context<Queue>()
      yield* Effect.promise(() =>
        expect
          .poll(
            async () => {
              expect((await Effect.runPromiseWith(services)(claim(100))).size).toBe(0)
              return (await row(busy)).asleep
            },
            { interval: 20 }
          )
          .toBe(true)
      )
      expect(yield* (yield* Queue).nextDueAt).toBeNull()
      yield* send(busy, 8)
      expect((yield* claim(100)).get(busy)).toBe(8)
    }))

  test("takes turns where more lanes are due than a claim visits", () =>
    Effect.gen(function* () {
      const lanes = Array.from({ length: 80 }, newLane)
      yield* put(lanes.flatMap((lane) => Array.from({ length: 12 }, () => ({ destination: lane }))))
      const visited = [...(yield* claim(256)).keys(), ...(yield* claim(256)).keys()]
      expect(new Set(visited).size).toBe(80)
    }))
})
