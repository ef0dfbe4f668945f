/**
 * Migrates the database at every start: numbered files of `schema/` run once each; functions are created again when their text or
 * planning changed, and dropped when their file is gone. Each transaction takes one lock and does one thing, so that several starts at
 * once do the same as one. A database of a newer release, or with another file under a known number, is refused.
 */
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type pg from "pg"
import { filled } from "./constants.ts"
import { planning } from "./planning.ts"
import { SCHEMA_DEFAULT, searchPathOf } from "./schemaName.ts"

/** Rises with every release that changes a table or a function: an older release would put its functions back under newer processes. */
const SQL_NUMBER = 1

interface SqlFile {
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

const filesIn = (folder: string): ReadonlyArray<SqlFile> =>
  readdirSync(join(import.meta.dirname, folder))
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => {
      const name = file.slice(0, -".sql".length)
      const sql = filled(readFileSync(join(import.meta.dirname, folder, file), "utf8"))
      const checksum = hash("sha256", sql + JSON.stringify(planning[name] ?? {}), "hex")
      return { name, sql, checksum }
    })

const numbered = () => filesIn("schema").map((file) => ({ ...file, number: Number(file.name.slice(0, 4)) }))

const functions = () => filesIn("functions")

/** Answers the files that ran. */
export const migrate = (pool: pg.Pool, schema = SCHEMA_DEFAULT): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.tryPromise({
    try: async () => {
      const client = await pool.connect()
      try {
        const ran: Array<string> = []
        for (;;) {
          const next = await inTransaction(client, schema, () => runNext(client))
          if (next === null) break
          ran.push(`schema/${next.name}.sql`)
        }
        ran.push(...(await inTransaction(client, schema, () => createFunctions(client))))
        client.release()
        return ran
      } catch (error) {
        client.release(true)
        throw error
      }
    },
    catch: (error) => error
  })

const inTransaction = async <A>(client: pg.PoolClient, schema: string, work: () => Promise<A>): Promise<A> => {
  await client.query("begin")
  // `lock_key(0)`, before that function exists.
  await client.query("select pg_advisory_xact_lock(hashtext($1)::bigint << 16)", [schema])
  await client.query(`create schema if not exists ${schema}`)
  await client.query(`set local search_path = ${searchPathOf(schema)}`)
  await client.query(
    `create table if not exists migration (
      number int primary key, name text not null, checksum text not null, at timestamptz not null default now())`
  )
  await client.query("create table if not exists installed_function (name text primary key, checksum text not null)")
  await client.query(
    "create table if not exists installed_release (one boolean primary key default true, number int not null)"
  )
  const result = await work()
  await client.query("commit")
  return result
}

const runNext = async (client: pg.PoolClient): Promise<SqlFile | null> => {
  const known = numbered()
  const done = await client.query<{ number: number; checksum: string }>(
    "select number, checksum from migration order by number"
  )
  const wrong = known.find(({ number, checksum }) =>
    done.rows.some((ran) => ran.number === number && ran.checksum !== checksum)
  )
  if (wrong !== undefined) {
    throw new Error(`${wrong.name}.sql is not what ran on this database under its number`)
  }
  const last = done.rows.at(-1)?.number ?? 0
  if (last > known.at(-1)!.number) throw new Error(newerRelease(last, known.at(-1)!.number))
  // Also one with a lower number than the last one that ran.
  const next = known.find(({ number }) => done.rows.every((ran) => ran.number !== number))
  if (next === undefined) return null
  await running(client, next)
  await client.query("insert into migration (number, name, checksum) values ($1, $2, $3)", [
    next.number,
    next.name,
    next.checksum
  ])
  return next
}

/** Drops a function first, since `create or replace` can't change parameters or result; trigger functions have neither. */
const createFunctions = async (client: pg.PoolClient): Promise<ReadonlyArray<string>> => {
  const release = await client.query<{ number: number }>("select number from installed_release")
  const before = release.rows[0]?.number ?? 0
  if (before > SQL_NUMBER) throw new Error(newerRelease(before, SQL_NUMBER))
  await client.query(
    "insert into installed_release (number) values ($1) on conflict (one) do update set number = excluded.number",
    [SQL_NUMBER]
  )
  const installed = await client.query<{ name: string; checksum: string }>(
    "select name, checksum from installed_function"
  )
  const checksums = new Map(installed.rows.map(({ name, checksum }) => [name, checksum]))
  const known = functions()
  const changed = known.filter(({ name, checksum }) => checksums.get(name) !== checksum)
  const gone = installed.rows.filter(({ name }) => known.every((file) => file.name !== name))
  // Functions name each other.
  await client.query("set local check_function_bodies = off")
  for (const { name } of gone) {
    for (const { signature } of await signaturesOf(client, name))
      await client.query(`drop function ${signature} cascade`)
    await client.query("delete from installed_function where name = $1", [name])
  }
  for (const file of changed) {
    for (const { signature, trigger } of await signaturesOf(client, file.name)) {
      if (!trigger) await client.query(`drop function ${signature}`)
    }
    await running(client, file)
    for (const setting of await settingsOf(client, file.name)) await client.query(setting)
    await client.query(
      `insert into installed_function (name, checksum) values ($1, $2)
        on conflict (name) do update set checksum = excluded.checksum`,
      [file.name, file.checksum]
    )
  }
  await client.query("select grant_to_senders()")
  return changed.map(({ name }) => `functions/${name}.sql`)
}

const signaturesOf = async (client: pg.PoolClient, name: string) =>
  (
    await client.query<{ signature: string; trigger: boolean; constant: boolean }>(
      `select oid::regprocedure::text as signature, prorettype = 'trigger'::regtype as trigger, provolatile = 'i' as constant
        from pg_proc where proname = $1 and pronamespace = current_schema()::regnamespace`,
      [name]
    )
  ).rows

/** A function with settings can't be inlined, so immutable ones have none. A file may hold several forms. */
const settingsOf = async (client: pg.PoolClient, name: string): Promise<ReadonlyArray<string>> => {
  const found = await signaturesOf(client, name)
  if (found.length === 0) throw new Error(`functions/${name}.sql creates no function of this name`)
  const planned = Object.entries(planning[name] ?? {}).map(([setting, value]) => `set ${setting} = ${value}`)
  return found.flatMap(({ signature, constant }) => {
    const settings = constant ? planned : ["set search_path from current", ...planned]
    return ["reset all", ...settings].map((set) => `alter function ${signature} ${set}`)
  })
}

const running = async (client: pg.PoolClient, { name, sql }: SqlFile): Promise<void> => {
  try {
    await client.query(sql)
  } catch (error) {
    throw new Error(`${name}.sql failed`, { cause: error })
  }
}

const newerRelease = (found: number, known: number) =>
  `the database was migrated to ${found} by a newer release; this one knows up to ${known}`

/** For commands that only read. */
export const requireMigrated = (pool: pg.Pool, schema: string): Effect.Effect<void, unknown> =>
  Effect.tryPromise({
    try: async () => {
      const needed = numbered().at(-1)!.number
      const table = `${schema}.migration`
      const exists = await pool.query<{ is: boolean }>("select to_regclass($1) is not null as is", [table])
      if (!exists.rows[0]?.is) throw new Error("there is no Posthaste in this database: run `posthaste migrate` first")
      const done = await pool.query<{ last: number | null }>(`select max(number) as last from ${table}`)
      const found = done.rows[0]?.last ?? 0
      if (found > needed) throw new Error(newerRelease(found, needed))
      if (found < needed) {
        throw new Error(
          `the database was migrated to ${found}, and this release needs ${needed}: run \`posthaste migrate\``
        )
      }
    },
    catch: (error) => error
  })
