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

  it.live("refuses a database on which another migration ran under the same number", () =>
    Effect.gen(function* () {
      const open = yield* pool
      yield* Effect.promise(() => open.query("update posthaste.migration set checksum = 'other' where number = 1"))
      expect(yield* refusal(open)).toContain("0001_streams.sql")
    })
  )
})
