/**
 * What a worker may still believe after the database went down at once, with commits that had not reached the disk. The
 * server of this file writes those by itself every ten seconds only, so a crash loses all of them.
 */

import { rmSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { DateTime, Effect, Layer, Redacted, Result } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { start } from "../../../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { postmasterOf } from "../../../../src/adapters/embedded-postgres/postmaster.ts"
import { Circuits } from "../../../../src/application/ports/Circuits.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../../src/application/ports/Journals.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import { decide, evolve, replay } from "../../../../src/domain/circuit/decider.ts"
import { circuitDefaults } from "../../../../src/domain/circuit/policy.ts"
import { stateOf } from "../../../../src/domain/circuit/state.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { asWorker, claimAll } from "../../../contracts/deliver/claims.ts"
import { circuitFacts } from "../../../contracts/destinations/samples.ts"
import { newLane, opened } from "../../../contracts/sample.ts"
import { temporaryDirectory } from "../../../servers/leftovers.ts"

const settings = {
  fsync: "off",
  wal_writer_delay: "10s",
  wal_writer_flush_after: "1GB",
  bgwriter_lru_maxpages: "0",
  autovacuum: "off"
}
const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

const server = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => temporaryDirectory()),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  )
  const directory = join(home, "data")
  const { url } = yield* start({ directory, settings })
  const crash = Effect.gen(function* () {
    process.kill(postmasterOf(join(directory, "postgres"))!.pid, "SIGQUIT")
    // Until it answers again.
    yield* Effect.retry(
      Effect.tryPromise(async () => {
        const client = new pg.Client(Redacted.value(url))
        client.on("error", () => {})
        try {
          await client.connect()
          await client.query("select 1")
        } finally {
          await client.end().catch(() => {})
        }
      }).pipe(Effect.delay("50 millis")),
      { times: 400 }
    )
  })
  return { url, crash }
})

const put = (count: number) =>
  Effect.gen(function* () {
    const lane = newLane()
    const steps = Array.from({ length: count }, () => opened({ destination: lane }))
    yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
    return steps.map(({ after }) => after.id)
  })

describe("a crash of the database", () => {
  it.live(
    "takes back nothing that a worker goes by",
    () =>
      Effect.gen(function* () {
        const { url, crash } = yield* server
        const ports = PostgresPorts.layer({ url, encryptionKey }).pipe(Layer.merge(Channels.unused))
        yield* Effect.gen(function* () {
          const queue = yield* Queue
          const again = <A>(ask: Effect.Effect<A, unknown, never>) => Effect.retry(ask, { times: 20 })

          // What was put back waits, although its worker has forgotten it and releases the batch without it.
          const ids = yield* put(3)
          const first = yield* queue.claim(asWorker("w"))
          yield* put(1)
          const [back, ...rest] = first!.messages.map(({ messageId }) => messageId)
          yield* queue.putBack(first!.batch, [back!])
          yield* crash
          yield* again(queue.release(first!.batch, []))
          expect(rest).toHaveLength(2)
          expect(ids).toContain(back)
          expect(yield* claimAll).toContain(back)

          // A probe that readers of the log have seen was handed out.
          const circuits = yield* Circuits
          const lane = newLane()
          yield* (yield* EventStore).append([opened({ destination: lane }).entry])
          const now = DateTime.makeUnsafe("2026-01-01T00:00:00Z")
          const command = {
            type: "CountFailures",
            failures: 5,
            error: null,
            now,
            policy: circuitDefaults,
            die: 0
          } as const
          const facts = Result.getOrThrow(decide(replay([]), command))
          yield* circuits.append(lane, 0, facts, stateOf(facts.reduce(evolve, replay([])), facts.length), null)
          yield* claimAll
          const before = yield* circuitFacts(lane)
          yield* crash
          expect(before.map(({ type }) => type)).toEqual(["CircuitOpened", "CircuitProbed"])
          expect(yield* again(Effect.provideService(circuitFacts(lane), Journals, yield* Journals))).toEqual(before)

          // No name of a batch is given twice.
          const names = new Set<string>([first!.batch])
          for (let round = 0; round < 3; round++) {
            yield* put(1)
            const claim = yield* queue.claim(asWorker("w"))
            expect(names).not.toContain(claim!.batch)
            names.add(claim!.batch)
            yield* crash
            yield* again(queue.nextDueAt)
          }
        }).pipe(Effect.provide(ports))
      }),
    300_000
  )
})
