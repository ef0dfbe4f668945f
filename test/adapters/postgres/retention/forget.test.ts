/** Steps of retention beside others that work on the same database, and the rows that are left of what was deleted, in all tables. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { describe, expect } from "vitest"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import { Retention } from "../../../../src/application/ports/Retention.ts"
import * as UnusedChannels from "../../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { makeEndpoint, webhook } from "../../../contracts/destinations/samples.ts"
import { ended, projected } from "../../../contracts/replays/deadLetterSamples.ts"
import { allRead, forgetDestinations, forgetMessages } from "../../../contracts/retention/forgetting.ts"
import { delivered, endedBefore, inMillis, newOrg, next, now, type Sample } from "../../../contracts/sample.ts"
import { refused } from "../../../contracts/written.ts"
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

describe("a step of retention", () => {
  it.live("deletes nothing while another one is under way, or a rebuild begins", () =>
    Effect.gen(function* () {
      const { ports, session: another } = yield* store
      const other = yield* another
      yield* Effect.gen(function* () {
        const { forget } = yield* Retention
        yield* Effect.promise(() => other.query("begin; select pg_advisory_xact_lock(lock_key(1))"))
        expect(yield* forget([])).toBeNull()
        yield* Effect.promise(() => other.query("rollback; begin; select build_projection('messages', 9, 1)"))
        expect(yield* forget([])).toBeNull()
        yield* Effect.promise(() => other.query("rollback"))
        expect(yield* forget([])).toBe(0)
      }).pipe(Effect.provideContext(ports))
    })
  )

  it.live(
    "and an append that goes on with the message at the same moment: one of them finds that the other was first",
    () =>
      Effect.gen(function* () {
        const { ports, session: another } = yield* store
        const [other, watcher] = [yield* another, yield* another]
        const ask = (text: string, values: ReadonlyArray<unknown> = []) =>
          Effect.promise(async () => (await other.query({ text, values: [...values], rowMode: "array" })).rows)
        const someoneWaits = Effect.promise(() =>
          until("a session that waits for another", async () => {
            const { rows } = await watcher.query(
              "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            )
            return rows.length === 1
          })
        )
        yield* Effect.gen(function* () {
          const store = yield* EventStore
          const { forget } = yield* Retention
          const dead = () => ended(refused(), inMillis(-1_000))
          const replayOf = (sample: Sample) => next(sample, { type: "ReplayMessage", now: now(), reason: null }).entry

          const first = yield* dead()
          yield* ask("begin")
          yield* ask("select forget($1, $2)", [[first.id], [first.version]])
          const late = yield* Effect.forkChild(store.append([replayOf(first)]))
          yield* someoneWaits
          yield* ask("commit")
          expect(yield* Fiber.join(late)).toEqual([{ type: "VersionConflict" }])
          expect(yield* ask("select from event where stream_id = $1", [first.id])).toEqual([])
          const again = yield* ask("select from ready where message_id = $1 and version > 1", [first.id])
          expect(again).toEqual([])

          const second = yield* dead()
          yield* ask("begin")
          yield* ask(
            "insert into event (stream_id, tx, at, version, name, data) values ($1, log_tx(), now(), $2, 'MessageReplayed@1', '{}')",
            [second.id, second.version + 1]
          )
          const found = yield* Effect.forkChild(forget([second]))
          yield* someoneWaits
          yield* ask("commit")
          expect(yield* Fiber.join(found)).toBe(0)
          expect(yield* ask("select from event where stream_id = $1", [second.id])).toHaveLength(second.version + 1)
        }).pipe(Effect.provideContext(ports))
      })
  )

  it.live("does not wait for a follower that has stood still for a day", () =>
    Effect.gen(function* () {
      const { ports, session: another } = yield* store
      const other = yield* another
      yield* Effect.gen(function* () {
        yield* projected([yield* ended(delivered, inMillis(-2_000), { acceptedAt: inMillis(-3_000) })])
        yield* allRead
        const find = Effect.map(
          Effect.flatMap(Retention, ({ find }) => find(endedBefore(inMillis(-1_000)), null, 10)),
          ({ messages }) => messages.length
        )
        const stands = (row: string) =>
          Effect.promise(() => other.query(`insert into projection (name, live, moved_at) values ${row}`))
        yield* stands("('audit', true, now() - interval '23 hours')")
        expect(yield* find).toBe(0)
        yield* Effect.promise(() => other.query("update projection set moved_at = now() - interval '25 hours'"))
        expect(yield* find).toBe(1)
        yield* Effect.promise(() => other.query("update follower set position = null where name = 'alerts'"))
        expect(yield* find).toBe(0)
        yield* Effect.promise(() => other.query("update event set at = now() - interval '25 hours'"))
        expect(yield* find).toBe(1)
      }).pipe(Effect.provideContext(ports))
    })
  )
})

describe("what retention forgot", () => {
  it.live("has left a row in no table", () =>
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
        const orgId = newOrg()
        const idempotency = { orgId, key: "k", requestHash: "h" }
        const message = yield* ended(delivered, inMillis(-1_000), {
          ...{ orgId, acceptedAt: inMillis(-2_000), idempotency }
        })
        const claim = (yield* queue.claim(asWorker("one")))!
        yield* queue.release(claim.batch, [])
        const { id: destination } = yield* makeEndpoint(orgId)
        yield* destinations.setPaused(webhook, orgId, destination, true)
        yield* destinations.remove(webhook, orgId, destination)
        yield* projected([message])
        const streamsOf = (id: string) => ask(`select distinct stream_id from event where stream like '%${id}%'`)
        // What else is kept of them, whoever writes it.
        for (const row of [
          `detail (stream_id, version, epoch, attempt, body) values ('${message.id}', 9, 1, 9, 'no')`,
          `parked (stream, reason) values ('message-${message.id}', 'a bug')`,
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
          ...["message_view", "detail", "parked"]
        ]
        const subjects = [message.id, destination]
        const all = [...subjects, ...(yield* Effect.forEach(subjects, streamsOf)).flat()]
        expect(yield* tracesOf(all)).toEqual(expect.arrayContaining(known))
        yield* allRead
        yield* ask("update projection set position = (select position from follower where name = 'alerts')")
        expect(yield* forgetMessages(endedBefore(later))).toEqual([1])
        expect(yield* forgetDestinations(later)).toBe(1)
        expect(yield* tracesOf(all)).toEqual([])
      }).pipe(Effect.provideContext(ports))
    })
  )
})
