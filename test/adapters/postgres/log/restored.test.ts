/** A database on another server than before, which counts its transactions anew: what is written there is read. */
import { it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { newLane, opened, type StorePorts } from "../../../contracts/sample.ts"
import { administer } from "../../../servers/administer.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { until } from "../../../servers/until.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

/** A start of a Posthaste on the database: what `work` answers, and what the log says of a restore. */
const start = Effect.fnUntraced(function* <A, E>(url: Redacted.Redacted, work: Effect.Effect<A, E, StorePorts>) {
  const lines: Array<string> = []
  const log = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const ports = Layer.merge(PostgresPorts.layer({ url, encryptionKey }), Channels.unused)
  const answer = yield* Effect.provide(work, ports).pipe(Effect.provide(log))
  return { answer, restored: lines.filter((line) => line.includes("restored, moved or promoted")) }
})

/** One run: writes a message, and answers the end of the log before and what comes after it. */
const run = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const { answer, restored } = yield* start(
    url,
    Effect.gen(function* () {
      const store = yield* EventStore
      const { head } = yield* store.extent
      const { id } = opened().after
      yield* store.append([opened({ id }).entry])
      for (;;) {
        const after = yield* store.readAll(head, 100)
        if (after.length > 0) return { id, head, after: after.map(({ stream }) => stream) }
        yield* Effect.sleep("20 millis")
      }
    })
  )
  return { ...answer, restored }
})

/** A connection beside Posthaste. */
const aside = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const oneValue = async (client: pg.Client, sql: string): Promise<unknown> =>
  Object.values((await client.query<object>(sql)).rows[0] ?? {})[0]

const ANOTHER_SERVER = "update posthaste.log_base set system_identifier = 1"

describe("the log of a database", () => {
  const goesOn = (where: string, change: string, why: string | null) =>
    it.live(`goes on ${where}`, () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const first = yield* run(url)
        expect(first.restored).toEqual([])
        yield* Effect.promise(() => administer(Redacted.value(url), change))
        const client = yield* aside(url)
        const before = Number(yield* Effect.promise(() => oneValue(client, "select max(tx) from event")))
        const second = yield* run(url)
        const after = Number(yield* Effect.promise(() => oneValue(client, "select max(tx) from event")))
        // Room for all that may have been written after the backup, and read by others.
        expect(after - before).toSatisfy((raised: number) => (why === null ? raised < 1e6 : raised > 4e9))
        expect(second.after).toEqual([`message-${second.id}`])
        expect(second.restored).toEqual(why === null ? [] : [expect.stringContaining(why)])
        const third = yield* run(url)
        expect(third.after).toEqual([`message-${third.id}`])
        expect(third.restored).toEqual([])
      })
    )

  goesOn("where it was", "select 1", null)
  goesOn(
    "on a server that counts below what is stored, although it does not tell which server it is",
    "update posthaste.event set tx = tx + 1000000000; update posthaste.log_base set system_identifier = null, timeline = null",
    "counts transactions below what is stored"
  )
  goesOn(
    "on another server",
    "update posthaste.event set tx = tx + 1000000000; update posthaste.log_base set system_identifier = 1",
    "on another server than before"
  )
  goesOn(
    "after a recovery to an earlier moment, above what readers outside have seen since",
    "update posthaste.log_base set timeline = timeline + 1",
    "recovered or promoted"
  )

  it.live("says until when it knows what was stored, and how many messages waited or were under way", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const line = { destination: newLane(), orderingKey: "one" }
      yield* start(
        url,
        Effect.gen(function* () {
          yield* (yield* EventStore).append([opened(), opened(line), opened(line), opened()].map(({ entry }) => entry))
          yield* (yield* Queue).claim({ ...asWorker("one"), limit: 1 })
        })
      )
      const client = yield* aside(url)
      yield* Effect.promise(() =>
        client.query("update event set at = at - interval '1 day' where position < (select max(position) from event)")
      )
      const last = (yield* Effect.promise(() => oneValue(client, "select max(at) from event"))) as Date
      yield* Effect.promise(() => client.query(ANOTHER_SERVER))
      const { restored } = yield* start(url, Effect.void)
      expect(restored).toEqual([expect.stringContaining("4 messages waited or were under way then")])
      expect(restored[0]).toContain(`until ${last.toISOString()}`)
    })
  )

  it.live("has nothing to say of a database in which nothing is stored", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* start(url, Effect.void)
      yield* Effect.promise(() => administer(Redacted.value(url), ANOTHER_SERVER))
      expect((yield* start(url, Effect.void)).restored).toEqual([])
    })
  )

  it.live("goes on above what somebody was writing when the restore was noticed", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const [writer, noticing, watching] = [yield* aside(url), yield* aside(url), yield* aside(url)]
      yield* Effect.promise(async () => {
        await writer.query(ANOTHER_SERVER)
        const highest = 9_000_000_000
        await writer.query("begin")
        await writer.query(`insert into event select e.* from (
            select (jsonb_populate_record(e, jsonb_build_object('tx', ${highest}, 'stream_id', gen_random_uuid()))).* from event e limit 1) e`)
        const pid = await oneValue(noticing, "select pg_backend_pid()")
        let isDone = false
        const noticed = noticing.query("select continue_log()").then(() => {
          isDone = true
        })
        await until("the look at the log, or its wait for the writer", async () => {
          const waits = await oneValue(watching, `select cardinality(pg_blocking_pids(${Number(pid)})) > 0`)
          return isDone || waits === true
        })
        await writer.query("commit")
        await noticed
        expect(Number(await oneValue(watching, "select log_tx()"))).toBeGreaterThan(highest)
      })
    })
  )

  it.live("goes on where its user may not ask the server who it is", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const client = yield* aside(url)
      yield* Effect.promise(async () => {
        const known = "select system_identifier || ' ' || timeline from log_base"
        const before = await oneValue(client, known)
        expect(before).toMatch(/^\d+ \d+$/)
        const role = `plain_${crypto.randomUUID().replaceAll("-", "")}`
        await client.query(`create role ${role}; grant all on schema posthaste to ${role};
          grant all on all tables in schema posthaste to ${role}; grant execute on all functions in schema posthaste to ${role};
          revoke execute on function pg_control_system() from public; set role ${role}`)
        expect((await client.query("select * from continue_log()")).rows).toEqual([])
        await client.query("reset role")
        expect(await oneValue(client, known)).toBe(before)
        await client.query(`drop owned by ${role}; drop role ${role}`)
      })
    })
  )
})
