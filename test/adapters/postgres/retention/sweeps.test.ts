/**
 * Sweeps of retention beside others who work on the same database: one sweep at a time, after whoever writes what was read before. And
 * what is left of what was forgotten, in all tables.
 */
import { randomUUID } from "node:crypto"
import { it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { Channels } from "../../../../src/application/ports/Channels.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { Journals } from "../../../../src/application/ports/Journals.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import { Replays } from "../../../../src/application/ports/Replays.ts"
import { Retention } from "../../../../src/application/ports/Retention.ts"
import * as UnusedChannels from "../../../../src/setup/channels.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { makeEndpoint, webhook } from "../../../contracts/destinations/samples.ts"
import { ended, projected } from "../../../contracts/replays/deadLetterSamples.ts"
import { listed } from "../../../contracts/replays/openings.ts"
import { sweepDestinations } from "../../../contracts/retention/destinationLivesContract.ts"
import { delivered, endedBefore, inMillis, newOrg } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"
import { until } from "../../../servers/until.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const later = inMillis(3_600_000)

/** A database of its own, and sessions beside the store. */
const store = Effect.gen(function* () {
  const url = yield* freshDatabase
  const ports = yield* Layer.build(Layer.merge(PostgresPorts.layer({ url, encryptionKey }), UnusedChannels.unused))
  return { ports, session: session(url) }
})

describe("a sweep of retention", () => {
  it.live("does nothing while another one is under way, whatever they sweep", () =>
    Effect.gen(function* () {
      const { ports, session: another } = yield* store
      const other = yield* another
      yield* Effect.gen(function* () {
        const retention = yield* Retention
        const orgId = newOrg()
        const journals = yield* Journals
        const { id } = yield* makeEndpoint(orgId)
        yield* (yield* Destinations).remove(webhook, orgId, id)
        const flap = ["OverdueBegan@1", "OverdueEnded@1"].map((name) => ({ name, data: '{"orgId":"acme"}' }))
        yield* journals.append(`overdue-${randomUUID()}`, 0, flap, inMillis(-1_000), null)
        const prefixes = new Map([...(yield* Channels)].map(([name, { journal }]) => [name, journal]))
        const sweeps = [
          retention.sweep(endedBefore(later), null, 10),
          retention.sweepEvents(endedBefore(later), null, 10),
          retention.sweepDeeds(later, null, 10),
          retention.sweepFronts(later, null, 10),
          retention.sweepDestinations(later, prefixes, null, 10)
        ]
        yield* Effect.promise(() => other.query("begin; select pg_advisory_xact_lock(lock_key(1))"))
        expect(yield* Effect.all(sweeps)).toEqual(sweeps.map(() => null))
        yield* Effect.promise(() => other.query("rollback"))
        expect(yield* Effect.all(sweeps)).not.toContain(null)
      }).pipe(Effect.provideContext(ports))
    })
  )

  const callsOf = {
    forget_ended: "now(), null, now(), now(), null, null, null, 10",
    forget_events: "now(), null, now(), null, null, 10",
    forget_deeds: "now(), null, null, 10",
    forget_fronts: "now(), '{}', '{}', '{}', '{}'",
    forget_destinations: "now(), '{}', '{}', '{}', '{}'",
    forget_dead: "'{}'"
  }
  it.live("waits for whoever writes what was read before, and nobody writes it after the sweep", () =>
    Effect.gen(function* () {
      const { session } = yield* store
      const [projector, sweeper, watching] = [yield* session, yield* session, yield* session]
      yield* Effect.promise(async () => {
        const early: Array<string> = []
        const pid = Number((await sweeper.query("select pg_backend_pid() as pid")).rows[0].pid)
        for (const [name, values] of Object.entries(callsOf)) {
          // What every step of a projection holds until it commits.
          await projector.query("begin; update projection set position = position")
          let isDone = false
          const swept = sweeper.query(`select ${name}(${values})`).then(() => {
            isDone = true
          })
          await until(`the end of ${name}, or its wait for the projector`, async () => {
            const { rows } = await watching.query(`select cardinality(pg_blocking_pids(${pid})) > 0 as waits`)
            return isDone || rows[0].waits
          })
          if (isDone) early.push(name)
          await projector.query("rollback")
          await swept
        }
        expect(early).toEqual([])
      })
    })
  )
})

describe("what retention forgot", () => {
  it.live("has left a row in no table but a mark for those that have read it", () =>
    Effect.gen(function* () {
      const { ports, session: another } = yield* store
      const client = yield* another
      const ask = (text: string) =>
        Effect.promise(async () => (await client.query<unknown[]>({ text, rowMode: "array" })).rows.flat() as string[])
      const tables = yield* ask(
        "select table_name from information_schema.tables where table_schema = 'posthaste' and table_type = 'BASE TABLE' order by 1"
      )
      /** The tables that name it, or the stream of a journal of its. */
      const tracesOf = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
        const found: Array<string> = []
        for (const table of tables) {
          const [row] = yield* ask(`select 1 from ${table} t where t::text ~ '${ids.join("|")}' limit 1`)
          if (row !== undefined) found.push(table)
        }
        return found
      })
      yield* Effect.gen(function* () {
        const destinations = yield* Destinations
        const queue = yield* Queue
        const replays = yield* Replays
        const retention = yield* Retention
        const orgId = newOrg()
        const idempotency = { orgId, key: "k", requestHash: "h" }
        const message = yield* ended(delivered, inMillis(-1_000), {
          ...{ orgId, acceptedAt: inMillis(-2_000), idempotency }
        })
        const claim = (yield* queue.claim(asWorker("one")))!
        yield* queue.release(claim.batch, [])
        const replay = listed(orgId, 2)
        yield* replays.open(replay)
        const requested = { name: "ReplayRequested@1", data: "{}" }
        yield* (yield* Journals).append(`replay-${replay.id}`, 0, [requested], inMillis(-1_000), null)
        yield* replays.close(replay.id)
        const { id: destination } = yield* makeEndpoint(orgId)
        yield* destinations.setPaused(webhook, orgId, destination, true)
        yield* destinations.remove(webhook, orgId, destination)
        yield* projected([message])
        const streamsOf = (id: string) => ask(`select distinct stream_id from event where stream like '%${id}%'`)
        const [journal] = yield* streamsOf(replay.id)
        // What else is kept of them, whoever writes it.
        for (const row of [
          `detail (stream_id, version, epoch, attempt, body) values ('${message.id}', 9, 1, 9, 'no')`,
          `stream_key (stream_id) values ('${message.id}'), ('${journal}')`,
          `replay_search (replay_id) values ('${replay.id}') on conflict do nothing`,
          `projection (name, generation, version, live) values ('health', 77, 1, true)`,
          `health (generation, destination) values (77, '${destination}')`,
          `health_bucket (generation, destination, starts_at, succeeded, failed, latencies) values (77, '${destination}', now(), 1, 0, '{}')`,
          `alert_notice (target_id, destination, at) values ('${destination}', gen_random_uuid(), now())`,
          `alert_notice (target_id, destination, at) values (gen_random_uuid(), '${destination}', now())`
        ]) {
          yield* ask(`insert into ${row}`)
        }
        const known = [
          ...["alert_notice", "message", "destination", "event", "health", "health_bucket", "idempotency", "lane"],
          ...["message_view", "replay", "replay_search", "detail", "stream_key"]
        ]
        const subjects = [message.id, replay.id, destination]
        const all = [...subjects, ...(yield* Effect.forEach(subjects, streamsOf)).flat()]
        expect(yield* tracesOf(all)).toEqual(expect.arrayContaining(known))
        expect((yield* retention.sweep(endedBefore(later), null, 100))!.removed).toBe(1)
        expect((yield* retention.sweepDeeds(later, null, 100))!.removed).toBe(1)
        expect(yield* sweepDestinations(later)).toBe(1)
        expect(yield* tracesOf(all)).toEqual(["forgotten_message"])
      }).pipe(Effect.provideContext(ports))
    })
  )
})
