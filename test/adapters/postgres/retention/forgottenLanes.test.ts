/**
 * What becomes of lanes when retention forgets destinations: none goes that a message is about to come to, or that is not as a message
 * would make it anew.
 */
import { it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { Circuits } from "../../../../src/application/ports/Circuits.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import { evolve, initial } from "../../../../src/domain/circuit/decider.ts"
import { stateOf } from "../../../../src/domain/circuit/state.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { makeEndpoint, webhook } from "../../../contracts/destinations/samples.ts"
import { sweepDestinations } from "../../../contracts/retention/destinationLivesContract.ts"
import { inMillis, newLane, newOrg, opened } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** A database of its own, and a session beside the store. */
const store = Effect.gen(function* () {
  const url = yield* freshDatabase
  const client = yield* session(url)
  const ports = yield* Layer.build(Layer.merge(PostgresPorts.layer({ url, encryptionKey }), Channels.unused))
  const ask = (text: string, values: ReadonlyArray<unknown> = []) =>
    Effect.promise(async () => (await client.query({ text, values: [...values], rowMode: "array" })).rows)
  const lanes = Effect.map(ask("select lane from lane"), (rows) => new Set(rows.map(([lane]) => lane as string)))
  return { ports, ask, lanes }
})

const sweep = sweepDestinations(inMillis(3_600_000))

describe("the lane of a destination that was removed", () => {
  it.live("stays with it while an append is about to put a message there", () =>
    Effect.gen(function* () {
      const { ports, ask, lanes } = yield* store
      yield* Effect.gen(function* () {
        const destinations = yield* Destinations
        const { orgId, id } = yield* makeEndpoint(newOrg())
        yield* destinations.remove(webhook, orgId, id)
        // What every append holds until it commits.
        yield* ask("begin")
        yield* ask("select pg_advisory_xact_lock_shared(lane_bucket($1))", [id])
        expect(yield* sweep).toBe(0)
        expect(yield* lanes).toEqual(new Set([id]))
        yield* ask("rollback")
        expect(yield* sweep).toBe(1)
        expect(yield* lanes).toEqual(new Set())
      }).pipe(Effect.provideContext(ports))
    })
  )
})

describe("a lane that is nobody's", () => {
  it.live("stays while a message is there, wherever it is, and while an append is about to put one there", () =>
    Effect.gen(function* () {
      const { ports, ask, lanes } = yield* store
      const lane = newLane()
      yield* ask("insert into lane (lane, ready_at) values ($1, 'infinity')", [lane])
      const message = "gen_random_uuid()"
      const swept = Effect.andThen(Effect.provideContext(sweep, ports), lanes)
      for (const [table, row] of [
        ["ready", `(lane, due_at, message_id, version, epoch, attempt) values ($1, now(), ${message}, 1, 1, 0)`],
        [
          "line_entry",
          `(message_id, lane, line, state, due_at, version, epoch, attempt) values (${message}, $1, 'a', 'WAITING', now(), 1, 1, 0)`
        ],
        [
          "claim",
          `(batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
            values (${message}, 'w', now(), array[${message}], array[$1::uuid], array[now()], '{1}', '{1}', '{0}')`
        ],
        ["set_aside", `(message_id, lane, reason, detail) values (${message}, $1, 'failed', 'a bug')`],
        // Nobody knows where it belongs.
        [
          "set_aside",
          `(message_id, lane, reason, detail) select ${message}, null, 'failed', 'a bug' where $1::uuid is not null`
        ],
        [
          "owed_message",
          `(message_id, event_id, name, data, at)
            values (${message}, ${message}, 'MessageQueued@1', json_build_object('destination', $1::uuid), now())`
        ]
      ] as const) {
        yield* ask(`insert into ${table} ${row}`, [lane])
        expect([table, yield* swept]).toEqual([table, new Set([lane])])
        yield* ask(`delete from ${table}`)
        // Whoever puts a message into a lane wakes it.
        yield* ask("update lane set ready_at = 'infinity'")
      }
      yield* ask("begin")
      yield* ask("select pg_advisory_xact_lock_shared(lane_bucket($1))", [lane])
      expect(yield* swept).toEqual(new Set([lane]))
      yield* ask("rollback")
      expect(yield* swept).toEqual(new Set())
    })
  )

  it.live("goes once it holds nothing, unless its circuit or a deferral tells something of it", () =>
    Effect.gen(function* () {
      const { ports, ask, lanes } = yield* store
      yield* Effect.gen(function* () {
        const events = yield* EventStore
        const queue = yield* Queue
        const circuits = yield* Circuits
        const [empty, full, deferred, held, reset, counting] = [
          newLane(),
          newLane(),
          newLane(),
          newLane(),
          newLane(),
          newLane()
        ]
        const living = yield* makeEndpoint(newOrg())
        // Where it waits for its time the lane sleeps until then.
        yield* events.append([opened({ destination: full, dueAt: inMillis(3_600_000) }).entry])
        yield* events.append([opened({ destination: empty }).entry, opened({ destination: counting }).entry])
        yield* queue.deferLane(deferred, Duration.hours(1))
        const facts = [
          { type: "CircuitHeld", reason: null },
          { type: "CircuitReset", reason: null }
        ] as const
        const [one, two] = [evolve(initial, facts[0]), facts.reduce(evolve, initial)]
        yield* circuits.append(held, 0, facts.slice(0, 1), stateOf(one, 1), null)
        yield* circuits.append(reset, 0, facts, { ...stateOf(two, 2), inFlightMax: null }, null)
        const claim = (yield* queue.claim(asWorker("one")))!
        yield* circuits.report([{ destination: counting, generation: 0, succeeded: false, failures: 2 }])
        const all = new Set<string>([empty, full, deferred, held, reset, counting, living.id])
        yield* sweep
        expect(yield* lanes).toEqual(all)

        // All asleep, as a claim leaves a lane that it finds nothing in: the one that is not empty would be mended, not forgotten.
        yield* ask("update lane set ready_at = 'infinity'")
        yield* sweep
        expect(yield* lanes).toEqual(all)
        yield* queue.release(claim.batch, [])
        yield* sweep
        expect(yield* lanes).toEqual(new Set([full, deferred, held, reset, counting, living.id]))
      }).pipe(Effect.provideContext(ports))
    })
  )
})
