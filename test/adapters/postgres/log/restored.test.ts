/** A database on another server than before, which counts its transactions anew: what is written there is read. */
import { it } from "@effect/vitest"
import { DateTime, Effect, Layer, Logger, Redacted } from "effect"
import type pg from "pg"
import { describe, expect } from "vitest"
import { Archive } from "../../../../src/application/ports/Archive.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../../src/application/ports/Queue.ts"
import * as Channels from "../../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { asWorker } from "../../../contracts/deliver/claims.ts"
import { newLane, opened, type StorePorts } from "../../../contracts/sample.ts"
import { administer } from "../../../servers/administer.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"
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
        const client = yield* session(url)
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
      const client = yield* session(url)
      // The last one was begun a second before the one before it.
      yield* Effect.promise(() =>
        client.query(`update event set at = at - case nth when 1 then interval '1 second' when 2 then interval '0' else interval '1 day' end
          from (select position as place, row_number() over (order by position desc) as nth from event) o where position = place`)
      )
      const last = (yield* Effect.promise(() => oneValue(client, "select max(at) from event"))) as Date
      yield* Effect.promise(() => client.query(ANOTHER_SERVER))
      const { restored } = yield* start(url, Effect.void)
      expect(restored).toEqual([expect.stringContaining("waited or were under way then: 4.")])
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
      const [writer, noticing, watching] = [yield* session(url), yield* session(url), yield* session(url)]
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

  it.live("goes on above a server's count that has come just to what is stored, and not before", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const client = yield* session(url)
      const whyWith = (above: number) =>
        Effect.promise(async () => {
          // The count stands still for this transaction, whatever others do.
          await client.query("begin isolation level repeatable read")
          const count = "(select base from log_base) + pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
          await client.query(`update event set tx = ${count} + ${above}`)
          const why = await oneValue(client, "select why from continue_log()")
          await client.query("rollback")
          return why
        })
      expect(yield* whyWith(-1)).toBeUndefined()
      expect(yield* whyWith(0)).toContain("counts transactions below what is stored")
    })
  )

  it.live("never sinks, also where all that was stored is forgotten", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const client = yield* session(url)
      const high = 20_000_000_000
      yield* Effect.promise(async () => {
        await client.query(`delete from event; update log_base set base = ${high}, timeline = timeline + 1`)
        await client.query("select continue_log()")
        expect(Number(await oneValue(client, "select log_tx()"))).toBeGreaterThan(high + 4e9)
      })
    })
  )

  it.live("is raised once by two starts at the same time", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const [one, other, watching] = [yield* session(url), yield* session(url), yield* session(url)]
      yield* Effect.promise(async () => {
        await one.query(ANOTHER_SERVER)
        await one.query("begin")
        expect((await one.query("select * from continue_log()")).rows).toHaveLength(1)
        const pid = Number(await oneValue(other, "select pg_backend_pid()"))
        const second = other.query("select * from continue_log()")
        await until("the wait for the first", () =>
          oneValue(watching, `select cardinality(pg_blocking_pids(${pid})) > 0`).then((waits) => waits === true)
        )
        await one.query("commit")
        expect((await second).rows).toEqual([])
      })
    })
  )

  it.live("was restored as often as it was, and the first time is named first", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const client = yield* session(url)
      const savedAt: Array<Date> = []
      for (let times = 0; times < 2; times++) {
        yield* run(url)
        savedAt.push((yield* Effect.promise(() => oneValue(client, "select max(at) from event"))) as Date)
        yield* Effect.promise(() => client.query(ANOTHER_SERVER))
      }
      const { answer } = yield* start(
        url,
        Effect.flatMap(Archive, ({ restorations }) => restorations)
      )
      expect(answer.map(({ savedAt }) => DateTime.toEpochMillis(savedAt))).toEqual(savedAt.map(Number))
      const noticedAt = answer.map(({ noticedAt }) => DateTime.toEpochMillis(noticedAt))
      expect(noticedAt).toEqual(noticedAt.toSorted((a, b) => a - b))
    })
  )

  it.live("goes on where its user may not ask the server who it is", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      yield* run(url)
      const client = yield* session(url)
      yield* Effect.promise(async () => {
        await client.query("update log_base set backup = '2026-01-01'")
        const known = "select concat_ws(' ', system_identifier, timeline, backup) from log_base"
        const before = await oneValue(client, known)
        expect(before).toMatch(/^\d+ \d+ 2026-01-01/)
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
