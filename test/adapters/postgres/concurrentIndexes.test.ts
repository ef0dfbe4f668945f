/** Indexes on big tables are built beside everybody who writes to them, and a database that comes from before gets the same ones. */
import { it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { migrate } from "../../../src/adapters/postgres/migrate.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import * as Channels from "../../../src/setup/channels.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { delivered, inMillis, opened, settled, started } from "../../contracts/sample.ts"
import { put, write } from "../../contracts/written.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

import { until } from "../../servers/until.ts"

const poolAt = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      // The database is dropped under connections that are still on their way out.
      new pg.Pool({ connectionString: Redacted.value(url), max: 6, options: "-c search_path=posthaste" }).on(
        "error",
        () => {}
      )
    ),
    (pool) => Effect.promise(() => pool.end())
  )

const rows = (pool: pg.Pool | pg.PoolClient, sql: string) =>
  Effect.promise(async () => (await pool.query<Record<string, string>>(sql)).rows)

const later = "(106, 107, 108, 109, 110, 111)"
const names = [
  "schema/0106_events_by_metadata.sql",
  "schema/0107_metadata_of_earlier_events.sql",
  "schema/0108_publication_entries.sql",
  "schema/0109_event_deeds.sql",
  "schema/0110_fronts_and_deeds.sql",
  "schema/0111_event_rest.sql"
]

/** As a release left it that built none of these indexes, with an event that has metadata. */
const asBefore = `
  drop index event_deeds, event_rest, publication_entries;
  alter table publication drop column entries;
  drop table forgotten_front;
  create index event_deed on event (at, stream_id) where version = 1 and stream ~ '^(access|command|replay)-';
  delete from migration where number in ${later};`
const event = `
  insert into event (stream_id, stream, tx, at, version, name, data) values
    ('00000000-0000-4000-8000-000000000001', 'event-1', 1, now(), 1, 'EventPublished@1', '{"metadata": {"order": "7"}}');
  insert into publication (id, stream_id, org_id, event_type, at) values
    ('00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000001', 'acme', 'paid', now());`
/** As a release left it that built them in transactions, under other numbers. */
const asBuilt = `
  insert into migration (number, name, checksum) values (91, 'a', 'x'), (93, 'b', 'x'), (95, 'c', 'x');
  delete from migration where number in ${later};`

const schemaOf = (pool: pg.Pool) =>
  Effect.all([
    rows(
      pool,
      `select i.indexdef, x.indisvalid::text from pg_indexes i join pg_index x on x.indexrelid = i.indexname::regclass
        where i.schemaname = 'posthaste' order by i.indexname`
    ),
    rows(
      pool,
      `select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
        where table_schema = 'posthaste' order by table_name, column_name`
    )
  ])

const entries = "select entries = array[md5(concat_ws(E'\\x1f', 'acme', 'order', '7'))::uuid] as found from publication"

describe("a database from before an index", () => {
  it.live("gets the same schema as a fresh one, and its earlier events are found by their metadata", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      const fresh = yield* schemaOf(pool)
      yield* rows(pool, asBefore)
      yield* rows(pool, event)
      expect(yield* schemaOf(pool)).not.toEqual(fresh)
      expect(yield* migrate(pool)).toEqual(names)
      expect(yield* schemaOf(pool)).toEqual(fresh)
      expect(yield* rows(pool, entries)).toEqual([{ found: true }])
    })
  )

  it.live("is left alone where the same was done under other numbers", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      const fresh = yield* schemaOf(pool)
      yield* rows(pool, event)
      yield* rows(pool, asBuilt)
      expect(yield* migrate(pool)).toEqual(names)
      expect(yield* schemaOf(pool)).toEqual(fresh)
      // What is null there was erased.
      expect(yield* rows(pool, entries)).toEqual([{ found: null }])
    })
  )

  it.live("gets an index anew that a crash left half built", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      const fresh = yield* schemaOf(pool)
      yield* rows(
        pool,
        `drop index event_rest; create index event_rest on event (name);
          update pg_index set indisvalid = false where indexrelid = 'event_rest'::regclass;
          delete from migration where number = 111`
      )
      expect(yield* migrate(pool)).toEqual(["schema/0111_event_rest.sql"])
      expect(yield* schemaOf(pool)).toEqual(fresh)
    })
  )
})

describe("while an index is built", () => {
  it.live("a process goes on accepting and delivering, no sweep waits for the table, and a second start waits", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const pool = yield* poolAt(url)
      yield* Effect.gen(function* () {
        yield* rows(pool, "drop index event_rest; delete from migration where number = 111")
        // An index waits for all who have looked at something before: so it is being built for as long as this looks.
        const reader = yield* Effect.acquireRelease(
          Effect.promise(() => pool.connect()),
          (client) => Effect.sync(() => client.release(true))
        )
        yield* rows(reader, "begin isolation level repeatable read; select 1")
        const starts = [migrate(pool), migrate(pool)].map((start) => Effect.runPromise(start))
        const waiting =
          "select from pg_stat_progress_create_index where phase = 'waiting for old snapshots' and datname = current_database()"
        const asking =
          "select from pg_stat_activity where query like 'select pg_try_advisory_lock%' and pid <> pg_backend_pid() and datname = current_database()"
        yield* Effect.promise(() =>
          until(
            "the index to wait",
            async () => (await pool.query(waiting)).rowCount === 1 && (await pool.query(asking)).rowCount === 1
          )
        )

        const [one] = yield* put([{}])
        const claim = yield* (yield* Queue).claim(asWorker("w"))
        expect(claim!.messages.map(({ messageId }) => messageId)).toEqual([one!.id])
        const begun = started(one!, { fence: claim!.batch })
        yield* write(begun, settled(begun.after, delivered, { fence: claim!.batch }))
        const before = { now: inMillis(0), daysMax: null, ended: null, dead: inMillis(0) }
        expect(yield* (yield* Retention).sweep(before, null, 9)).toBe(null)
        expect((yield* (yield* EventStore).append([opened().entry]))[0]!.type).toBe("Appended")
        expect(yield* rows(pool, waiting)).toHaveLength(1)

        yield* rows(reader, "commit")
        const ran = yield* Effect.promise(() => Promise.all(starts))
        expect(ran.toSorted((a, b) => a.length - b.length)).toEqual([[], ["schema/0111_event_rest.sql"]])
        expect(
          yield* rows(pool, "select indisvalid::text as valid from pg_index where indexrelid = 'event_rest'::regclass")
        ).toEqual([{ valid: "true" }])
        // The lock of sweeps is free again.
        expect(yield* (yield* Retention).sweep(before, null, 9)).not.toBe(null)
      }).pipe(
        Effect.provide(
          PostgresPorts.layer({
            url,
            encryptionKey: Redacted.make(new Uint8Array(32).fill(7)),
            freshFor: Duration.millis(20)
          }).pipe(Layer.merge(Channels.unused))
        )
      )
    })
  )
})

describe("while an index is dropped", () => {
  const drops = ["schema/0118_no_index_of_open_messages.sql", "schema/0119_no_index_of_all_messages.sql"]
  const asBefore = `
    create index message_view_open on message_view (generation, id) where status in ('QUEUED', 'SENDING');
    create index message_view_of_org on message_view (generation, org_id, created_at, id) with (fillfactor = 50);
    delete from migration where number in (118, 119)`

  it.live("whoever reads or writes its table goes on, however long another one has been reading", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      const fresh = yield* schemaOf(pool)
      yield* rows(pool, asBefore)
      const reader = yield* Effect.acquireRelease(
        Effect.promise(() => pool.connect()),
        (client) => Effect.sync(() => client.release(true))
      )
      yield* rows(reader, "begin; select count(*) from message_view")
      const start = Effect.runPromise(migrate(pool))
      const waiting =
        "select from pg_stat_activity where query like '%drop index concurrently if%' and pid <> pg_backend_pid() and wait_event_type = 'Lock'"
      const dropping = "select from pg_index where indexrelid = 'message_view_open'::regclass and not indisvalid"
      yield* Effect.promise(() =>
        until(
          "the drop to wait",
          async () => (await pool.query(waiting)).rowCount === 1 && (await pool.query(dropping)).rowCount === 1
        )
      )
      yield* rows(pool, "set lock_timeout = '1 s'; select count(*) from message_view")
      yield* rows(pool, "set lock_timeout = '1 s'; update message_view set version = version")
      yield* rows(reader, "commit")
      expect(yield* Effect.promise(() => start)).toEqual(drops)
      expect(yield* schemaOf(pool)).toEqual(fresh)
    })
  )

  it.live("a crash leaves nothing that the next start does not drop", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      const fresh = yield* schemaOf(pool)
      yield* rows(pool, asBefore)
      yield* rows(pool, "update pg_index set indisvalid = false where indexrelid = 'message_view_open'::regclass")
      expect(yield* migrate(pool)).toEqual(drops)
      expect(yield* schemaOf(pool)).toEqual(fresh)
    })
  )
})

describe("messages under way that an earlier release listed", () => {
  it.live("are found by the index of those that have not ended", () =>
    Effect.gen(function* () {
      const pool = yield* poolAt(yield* freshDatabase)
      yield* rows(
        pool,
        `create index message_view_open on message_view (generation, id) where status in ('QUEUED', 'SENDING');
          delete from migration where number in (117, 118);
          insert into message_view (id, generation, org_id, version, status, channel, recipient, created_at, ends_at, view)
            select gen_random_uuid(), 1, 'acme', 2, s.status, 'webhook', 'e', now(), s.ends_at, '{}'
            from (values ('SENDING', null), ('QUEUED', timestamptz '2030-01-01 00:00Z'), ('SENT', null)) s(status, ends_at)`
      )
      yield* migrate(pool)
      expect(
        yield* rows(pool, "select status, extract(year from ends_at)::text as ends from message_view order by 1")
      ).toEqual([
        { status: "QUEUED", ends: "2030" },
        { status: "SENDING", ends: "Infinity" },
        { status: "SENT", ends: null }
      ])
    })
  )
})
