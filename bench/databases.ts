/**
 * One PostgreSQL server for the whole run, one fresh database for each measurement: nobody inherits another's bloat,
 * caches are equally cold, and the settings are the same for all.
 *
 * `BENCH_DATABASE_URL` names the server (a superuser's URL; databases called `bench_…` are dropped and created);
 * without it the embedded one is started with its data in a temporary directory, and stopped when the bench is.
 */
import { rm } from "node:fs/promises"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import * as EmbeddedPostgres from "../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { leaveNothingBehind, temporaryDirectory } from "../test/servers/leftovers.ts"
import { serverCpuSeconds } from "./cpuTime.ts"

export interface Databases {
  /** Drops and creates `bench_<name>`; answers with its URL. */
  readonly create: (name: string) => Promise<string>
  readonly drop: (name: string) => Promise<void>
  /** CPU time the whole server has used; null when it runs elsewhere. */
  readonly cpuSeconds: () => Promise<number | null>
  readonly settings: Readonly<Record<string, string>>
  readonly close: () => Promise<void>
}

const shown = ["server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"]

const connected = async <A>(url: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Answers with the rows of the last statement. */
export const query = <Row extends object>(
  url: string,
  ...statements: ReadonlyArray<string>
): Promise<ReadonlyArray<Row>> =>
  connected(url, async (client) => {
    let rows: ReadonlyArray<Row> = []
    for (const statement of statements) rows = (await client.query<Row & pg.QueryResultRow>(statement)).rows
    return rows
  })

/**
 * What everybody's database gets after its queue was filled and before it is timed: statistics as autovacuum would have
 * made them, and a checkpoint, so that nobody pays for writing out what another one did.
 */
export const settle = (url: string): Promise<unknown> => query(url, "vacuum analyze", "checkpoint")

export const openDatabases = async (): Promise<Databases> => {
  const given = process.env["BENCH_DATABASE_URL"]
  const starting = given === undefined ? startEmbedded() : null
  // It is in a group of its own, so Ctrl-C does not reach it; and it may come while the server starts.
  for (const signal of starting === null ? [] : (["SIGINT", "SIGTERM"] as const))
    process.once(signal, () => void starting!.then(({ close }) => close()).finally(() => process.exit(130)))
  leaveNothingBehind()
  const server = await starting
  const databases = await databasesOf(server?.url ?? given!)
  return server === null ? databases : { ...databases, close: server.close }
}

/** Of a server that somebody else starts and stops. */
export const databasesOf = async (serverUrl: string): Promise<Databases> => {
  const server = { url: serverUrl, close: async () => {} }
  const urlOf = (name: string): string => {
    const url = new URL(server.url)
    url.pathname = `/bench_${name}`
    return url.toString()
  }
  const drop = (name: string) => query(server.url, `drop database if exists bench_${name} with (force)`)
  const settings = await query<{ name: string; value: string }>(
    server.url,
    `select name, current_setting(name) as value from unnest(array[${shown.map((name) => `'${name}'`).join()}]) name`
  )
  return {
    create: async (name) => {
      await drop(name)
      await query(server.url, `create database bench_${name}`)
      return urlOf(name)
    },
    drop: async (name) => void (await drop(name)),
    cpuSeconds: () =>
      connected(server.url, async (client) => {
        const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid")
        return serverCpuSeconds(rows[0]!.pid)
      }),
    settings: Object.fromEntries(settings.map(({ name, value }) => [name, value])),
    close: server.close
  }
}

const startEmbedded = async (): Promise<{ readonly url: string; readonly close: () => Promise<void> }> => {
  const directory = temporaryDirectory()
  const scope = Effect.runSync(Scope.make())
  // graphile-worker asks for a connection per concurrent job.
  const { url } = await Effect.runPromise(
    EmbeddedPostgres.start({ directory, settings: { max_connections: "200" } }).pipe(Scope.provide(scope))
  )
  return {
    url: Redacted.value(url),
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await rm(directory, { recursive: true, force: true })
    }
  }
}
