import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { migrate } from "../../../src/adapters/postgres/migrate.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const pool = Effect.flatMap(freshDatabase, (url) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      // The database is dropped under connections that are still on their way out.
      new pg.Pool({ connectionString: Redacted.value(url), max: 4 }).on("error", () => {})
    ),
    (open) => Effect.promise(() => open.end())
  )
)

const refusal = (open: pg.Pool) => Effect.map(Effect.flip(migrate(open)), (error) => String(error))

describe("migrating", () => {
  it.live("a database that is up to date changes nothing, also when several start at once", () =>
    Effect.gen(function* () {
      const open = yield* pool
      const ran = () => Effect.promise(async () => (await open.query("select * from posthaste.migration")).rows)
      const before = yield* ran()
      yield* Effect.all([migrate(open), migrate(open), migrate(open)], { concurrency: 3 })
      expect(yield* ran()).toEqual(before)
      expect(before.length).toBeGreaterThan(0)
    })
  )

  it.live("refuses a database that a newer release has migrated", () =>
    Effect.gen(function* () {
      const open = yield* pool
      yield* Effect.promise(() => open.query("insert into posthaste.migration values (9000, 'later', 'x')"))
      expect(yield* refusal(open)).toContain("newer release")
    })
  )

  it.live("refuses a database whose functions are a newer release's, and changes none of them", () =>
    Effect.gen(function* () {
      const open = yield* pool
      const run = (sql: string) => Effect.promise(async () => (await open.query(sql)).rows)
      yield* run("update posthaste.installed_release set number = 9000")
      yield* run(
        "drop function posthaste.log_end() cascade; delete from posthaste.installed_function where name = 'log_end'"
      )
      expect(yield* refusal(open)).toContain("newer release")
      expect(yield* run("select from pg_proc where proname = 'log_end'")).toEqual([])
    })
  )

  it.live("refuses a database on which another migration ran under the same number", () =>
    Effect.gen(function* () {
      const open = yield* pool
      yield* Effect.promise(() => open.query("update posthaste.migration set checksum = 'other' where number = 1"))
      expect(yield* refusal(open)).toContain("0001_streams.sql")
    })
  )

  it.live("runs a number that was still missing when a later one ran", () =>
    Effect.gen(function* () {
      const open = yield* pool
      yield* Effect.promise(() =>
        open.query(
          "drop table posthaste.receipt_inbox; drop sequence posthaste.receipt_inbox_id; delete from posthaste.migration where number = 8"
        )
      )
      expect(yield* migrate(open)).toEqual(["schema/0008_receipts.sql"])
    })
  )

  it.live("creates a function again when its file is another, and drops it when its file is gone", () =>
    Effect.gen(function* () {
      const open = yield* pool
      const run = (sql: string) => Effect.promise(async () => (await open.query(sql)).rows)
      const functions = run(
        "select proname, prosrc, proconfig from pg_proc where pronamespace = 'posthaste'::regnamespace order by 1, 2"
      )
      const before = yield* functions
      // As another release left it: other parameters, another result, another body, and one that nobody calls any more.
      yield* run("drop function posthaste.put_back")
      yield* run("create function posthaste.put_back(batch text) returns text language sql as 'select batch'")
      yield* run("create function posthaste.of_old() returns int language sql as 'select 1'")
      yield* run("update posthaste.installed_function set checksum = 'other' where name = 'put_back'")
      yield* run("insert into posthaste.installed_function values ('of_old', 'other')")
      expect(yield* migrate(open)).toEqual(["functions/put_back.sql"])
      expect(yield* functions).toEqual(before)
      expect(yield* migrate(open)).toEqual([])
    })
  )
})
