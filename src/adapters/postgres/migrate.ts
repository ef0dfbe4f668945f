/**
 * Numbered, forward-only migrations, run at start-up under a lock, each in its own transaction with the
 * row that says it ran. A database written by a newer release is refused rather than guessed at, and so is one
 * whose migrations were others than the ones we know under the same numbers.
 */
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type pg from "pg"

const folder = join(import.meta.dirname, "migrations")
const LOCK = 7_699_999

interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

const migrations = (): ReadonlyArray<Migration> =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => {
      const sql = readFileSync(join(folder, file), "utf8")
      return { number: Number(file.slice(0, 4)), name: file, sql, checksum: hash("sha256", sql, "hex") }
    })

/** Answers the names of those that ran now. */
export const migrate = (pool: pg.Pool): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.tryPromise({
    try: async () => {
      const client = await pool.connect()
      try {
        await client.query("select pg_advisory_lock($1)", [LOCK])
        await client.query("create schema if not exists posthaste")
        await client.query(
          `create table if not exists posthaste.migration (
            number int primary key, name text not null, checksum text not null, at timestamptz not null default now())`
        )
        const done = await client.query<{ number: number; checksum: string }>(
          "select number, checksum from posthaste.migration order by number"
        )
        const last = done.rows.at(-1)?.number ?? 0
        const known = migrations()
        for (const { number, name, checksum } of known) {
          if (done.rows.some((ran) => ran.number === number && ran.checksum !== checksum)) {
            throw new Error(`${name} is not the migration that ran on this database under its number`)
          }
        }
        if (last > (known.at(-1)?.number ?? 0)) {
          throw new Error(
            `the database was migrated to ${last} by a newer release; this one knows up to ${known.at(-1)?.number}`
          )
        }
        const due = known.filter(({ number }) => number > last)
        for (const migration of due) {
          await client.query("begin")
          try {
            await client.query(migration.sql)
            await client.query("insert into posthaste.migration (number, name, checksum) values ($1, $2, $3)", [
              migration.number,
              migration.name,
              migration.checksum
            ])
            await client.query("commit")
          } catch (error) {
            await client.query("rollback")
            throw new Error(`migration ${migration.name} failed`, { cause: error })
          }
        }
        await client.query("select pg_advisory_unlock($1)", [LOCK])
        client.release()
        return due.map(({ name }) => name)
      } catch (error) {
        // Ending the session also gives the lock back.
        client.release(true)
        throw error
      }
    },
    catch: (error) => error
  })

/** Fails unless the database is where this release would bring it: for whoever only looks. */
export const requireMigrated = (pool: pg.Pool): Effect.Effect<void, unknown> =>
  Effect.tryPromise({
    try: async () => {
      const last = migrations().at(-1)?.number ?? 0
      const exists = await pool.query<{ is: boolean }>("select to_regclass('posthaste.migration') is not null as is")
      if (!exists.rows[0]?.is) throw new Error("there is no Posthaste in this database: run `posthaste migrate` first")
      const done = await pool.query<{ last: number }>("select max(number) as last from posthaste.migration")
      const found = done.rows[0]?.last ?? 0
      if (found < last) {
        throw new Error(
          `the database was migrated to ${found}, and this release needs ${last}: run \`posthaste migrate\``
        )
      }
      if (found > last) {
        throw new Error(`the database was migrated to ${found} by a newer release; this one knows up to ${last}`)
      }
    },
    catch: (error) => error
  })
