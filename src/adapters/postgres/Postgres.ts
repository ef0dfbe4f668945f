/**
 * The connections, and the only file that touches `pg`. Private to this adapter.
 *
 * Four pools, so that no kind of work can starve another: `durable` for appends and whatever else a process goes by once it
 * is answered, `queue` for claims and releases, `derived` for projections, `reads` for everything people ask. Commits of
 * `queue` and `derived` need not reach the disk before they answer: ARCHITECTURE.md says under "Crashes" what the loss of
 * each means, and why nothing is stranded by it.
 */
import { hash } from "node:crypto"
import { Context, DateTime, Effect, Layer, Redacted, Schema } from "effect"
import pg from "pg"
import { StoreUnavailable } from "../../application/errors.ts"
import { migrate, requireMigrated } from "./migrate.ts"
import { sessionPlanning } from "./planning.ts"
import { channelOf, SCHEMA_DEFAULT, searchPathOf } from "./schemaName.ts"

export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", {
  /** SQLSTATE; null when the server did not answer. */
  code: Schema.NullOr(Schema.String),
  cause: Schema.Defect()
}) {}

export interface Statement {
  /** Prepared under this name once per connection; without one, planned for each call. */
  readonly name?: string
  readonly text: string
}

type Parts = [texts: TemplateStringsArray, ...values: ReadonlyArray<string | number>]
const joined = ([texts, ...values]: Parts) => String.raw({ raw: texts }, ...values)

/** A statement for every call, prepared under a name made of its text. */
export const prepared = (...parts: Parts): Statement => {
  const text = joined(parts)
  return { name: hash("sha256", text, "base64url"), text }
}

/** A statement that is rare, or best planned for the values it comes with. */
export const unprepared = (...parts: Parts): Statement => ({ text: joined(parts) })

export interface Connections {
  /** Rows as objects, in whatever names the statement gives their columns; times as `DateTime`. */
  readonly query: <Row extends object>(
    statement: Statement,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, QueryFailed>
  /** Rows as arrays of the server's own text, for the hot paths that know what they read. */
  readonly rows: (
    statement: Statement,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<string | null>>, QueryFailed>
}

export class Postgres extends Context.Service<
  Postgres,
  {
    readonly durable: Connections
    readonly queue: Connections
    readonly reads: Connections
    readonly derived: Connections
    /** Calls back on every notification of `topic` in our schema, over a connection that is made again when it breaks. */
    readonly listen: (topic: string, heard: () => void) => Effect.Effect<void>
    /** The connections of each pool, now. */
    readonly connections: () => ReadonlyArray<{
      readonly pool: string
      readonly inUse: number
      readonly idle: number
      /** Statements that wait for a connection. */
      readonly waiting: number
    }>
  }
>()("posthaste/adapters/postgres/Postgres") {}

export interface Options {
  readonly url: Redacted.Redacted
  readonly schema?: string
  /** Connections for appends: each carries one group commit. */
  readonly writers?: number
  readonly readers?: number
  /** Migrations are not run: a database that lacks some is refused. */
  readonly asItIs?: boolean
}

export const layer = (options: Options) =>
  Layer.effect(
    Postgres,
    Effect.gen(function* () {
      const schema = options.schema ?? SCHEMA_DEFAULT
      const pool = (max: number, settings: string) => acquirePool(options.url, schema, max, settings)
      const durable = yield* pool(options.writers ?? 2, "")
      yield* (options.asItIs ? requireMigrated(durable, schema) : migrate(durable, schema)).pipe(
        Effect.mapError(queryFailed)
      )
      const queue = yield* pool(3, "-c synchronous_commit=off")
      const reads = yield* pool(options.readers ?? 6, "")
      const derived = yield* pool(3, "-c synchronous_commit=off")
      const pools = Object.entries({ durable, queue, reads, derived })
      return Postgres.of({
        durable: connections(durable),
        queue: connections(queue),
        reads: connections(reads),
        derived: connections(derived),
        listen: (topic, heard) => listen(options.url, channelOf(schema, topic), heard),
        connections: () =>
          pools.map(([pool, { totalCount, idleCount, waitingCount }]) => ({
            ...{ pool, inUse: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
          }))
      })
    })
  )

/** Only brings the database up to date; answers the names of the schema's files and functions that ran. */
export const migrateAt = (url: Redacted.Redacted, schema: string) =>
  Effect.scoped(
    Effect.flatMap(acquirePool(url, schema, 1, ""), (pool) => Effect.mapError(migrate(pool, schema), queryFailed))
  )

const planned = Object.entries(sessionPlanning)
  .map(([setting, value]) => `-c ${setting}=${value}`)
  .join(" ")

const acquirePool = (url: Redacted.Redacted, schema: string, max: number, settings: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const pool = new pg.Pool({
        connectionString: Redacted.value(url),
        max,
        idleTimeoutMillis: 60_000,
        connectionTimeoutMillis: 10_000,
        application_name: "posthaste",
        options: `-c idle_in_transaction_session_timeout=30s -c TimeZone=UTC -c search_path=${searchPathOf(schema)} ${planned} ${settings}`
      })
      // An idle connection that breaks is replaced on next use; without a listener it would end the process.
      pool.on("error", () => {})
      return pool
    }),
    (pool) => Effect.promise(() => pool.end())
  )

const asText = { getTypeParser: () => (text: string) => text }

const { TIMESTAMPTZ } = pg.types.builtins
const dateOf = pg.types.getTypeParser(TIMESTAMPTZ)
const timeOf = (text: string) => DateTime.fromDateUnsafe(dateOf(text))
const withTimes: pg.CustomTypesConfig = {
  getTypeParser: (type: number) => (type === TIMESTAMPTZ ? timeOf : pg.types.getTypeParser(type))
}

const connections = (pool: pg.Pool): Connections => {
  const ask = <Rows>(config: object) =>
    Effect.callback<Rows, QueryFailed>((resume) => {
      pool.query(config as pg.QueryConfig).then(
        ({ rows }) => resume(Effect.succeed(rows as Rows)),
        (error) => resume(Effect.fail(queryFailed(error)))
      )
    })
  return {
    query: (statement, values) => ask({ ...statement, values: [...values], types: withTimes }),
    rows: (statement, values) => ask({ ...statement, values: [...values], rowMode: "array", types: asText })
  }
}

const queryFailed = (cause: unknown): QueryFailed => new QueryFailed({ code: sqlState(cause), cause })

const sqlState = (cause: unknown): string | null =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : null

/** Every port says the same of a query that did not answer. */
export const unavailable = <A, R>(effect: Effect.Effect<A, QueryFailed, R>): Effect.Effect<A, StoreUnavailable, R> =>
  Effect.mapError(effect, (cause) => new StoreUnavailable({ cause }))

/** What a query answers, in the words of the port. */
export const reading = <Rows, A>(query: Effect.Effect<Rows, QueryFailed>, read: (rows: Rows) => A) =>
  unavailable(Effect.map(query, read))

const LISTEN_AGAIN_MS = 1_000

const listen = (url: Redacted.Redacted, channel: string, heard: () => void): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const client = new pg.Client({
      connectionString: Redacted.value(url),
      application_name: "posthaste listen",
      keepAlive: true
    })
    const lost = () => resume(Effect.void)
    client.on("notification", heard)
    client.on("error", lost)
    client.on("end", lost)
    client
      .connect()
      .then(() => client.query(`listen ${pg.escapeIdentifier(channel)}`))
      // Whatever was notified while nobody listened is made up for by looking once.
      .then(heard, lost)
    return Effect.promise(() => client.end().catch(() => {}))
  }).pipe(Effect.andThen(Effect.sleep(LISTEN_AGAIN_MS)), Effect.forever)
