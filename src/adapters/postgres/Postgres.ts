/**
 * The connections, private to this adapter: each kind of work has a pool and a deadline of its own (pool.ts), so that none starves
 * another. Commits of `queue` and `derived` answer before they reach the disk: docs/internals.md says why their loss strands nothing.
 */
import { hash } from "node:crypto"
import { Context, DateTime, Effect, Layer, Record, Redacted, Schema } from "effect"
import pg from "pg"
import { StoreUnavailable } from "../../application/ports/errors.ts"
import { migrate, requireMigrated } from "./migrate.ts"
import { type Kind, type Pool, type Server, serverAt, sqlState } from "./pool.ts"
import { channelOf, SCHEMA_DEFAULT } from "./schemaName.ts"

export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", {
  /** SQLSTATE; null when the server did not answer. */
  code: Schema.NullOr(Schema.String),
  cause: Schema.Defect()
}) {}

export interface Statement {
  /** Prepared under this name once a connection; without one, planned for each call. */
  readonly name?: string
  readonly text: string
}

type Parts = [texts: TemplateStringsArray, ...values: ReadonlyArray<string | number>]
const joined = ([texts, ...values]: Parts) => String.raw({ raw: texts }, ...values)

/** A prepared statement, named by the hash of its text. */
export const prepared = (...parts: Parts): Statement => {
  const text = joined(parts)
  return { name: hash("sha256", text, "base64url"), text }
}

/** A rare statement, or one best planned for its values. */
export const unprepared = (...parts: Parts): Statement => ({ text: joined(parts) })

export interface Connections {
  /** Rows as objects, times as `DateTime`. */
  readonly query: <Row extends object>(
    statement: Statement,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, QueryFailed>
  /** Rows as arrays of the server's own text, for hot paths. */
  readonly rows: (
    statement: Statement,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<string | null>>, QueryFailed>
}

/** These take milliseconds, the longest some hundred. */
const SHORT_MS = 8_000

/** Up to 20 connections a process: these, and one that listens. */
const kinds = {
  /** Group commits that accept messages and events and settle attempts; nothing else, because all callers wait for them. */
  appends: { connections: 2, answersWithinMs: SHORT_MS },
  /** Other commits that a process relies on. */
  durable: { connections: 2, answersWithinMs: SHORT_MS },
  /** Claims, releases and leases. */
  queue: { connections: 3, answersWithinMs: SHORT_MS, asynchronous: true },
  /** One key, message or destination, never behind a list. */
  lookups: { connections: 4, answersWithinMs: 5_000, onlyReads: true },
  /** Lists, counts and the log. */
  reads: { connections: 4, answersWithinMs: 20_000, onlyReads: true },
  /** Steps of projections and searches: lost ones are done again. */
  derived: { connections: 3, answersWithinMs: 30_000, asynchronous: true },
  /** Changes of a great many rows, such as retention; no caller waits for it. */
  bulk: { connections: 1, answersWithinMs: 300_000 }
} satisfies Readonly<Record<string, Kind>>

export class Postgres extends Context.Service<
  Postgres,
  Readonly<Record<keyof typeof kinds, Connections>> & {
    /** Calls `heard` on each notification, and without a text when the connection was made anew. */
    readonly listen: (topic: string, heard: (text?: string) => void) => Effect.Effect<void>
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
  /** May name several hosts. */
  readonly url: Redacted.Redacted
  readonly schema?: string
  /** Migrations are not run: a database that lacks some is refused. */
  readonly asItIs?: boolean
  /** In place of each kind's own, for tests. */
  readonly answersWithinMs?: number
}

export const layer = (options: Options) =>
  Layer.effect(
    Postgres,
    Effect.gen(function* () {
      const schema = options.schema ?? SCHEMA_DEFAULT
      const server = yield* acquireServer(options.url, schema)
      const own = server.pool(migrating).pg
      const begin = options.asItIs
        ? Effect.mapError(requireMigrated(own, schema), queryFailed)
        : Effect.andThen(Effect.mapError(migrate(own, schema), queryFailed), Effect.flatMap(continueLog(own), say))
      yield* unlessSilent(server, begin)
      const { answersWithinMs } = options
      const pools = Record.map(kinds, (kind) =>
        server.pool(answersWithinMs === undefined ? kind : { ...kind, answersWithinMs })
      )
      return Postgres.of({
        ...Record.map(pools, connectionsOf),
        listen: (topic, heard) => listen(server, channelOf(schema, topic), heard),
        connections: () =>
          Object.entries(pools).map(
            ([
              pool,
              {
                pg: { totalCount, idleCount, waitingCount }
              }
            ]) => ({
              ...{ pool, inUse: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
            })
          )
      })
    })
  )

/** Undefined where the log goes on as it was. */
const continueLog = (pool: pg.Pool) =>
  Effect.tryPromise({
    try: async () => (await pool.query<Restored>("select why, saved_at, waiting from continue_log()")).rows[0],
    catch: queryFailed
  })

interface Restored {
  readonly why: string
  readonly saved_at: Date
  readonly waiting: string
}

const say = (restored: Restored | undefined) =>
  restored === undefined
    ? Effect.void
    : Effect.logWarning(
        `the database was restored, moved or promoted: ${restored.why}. It knows what was stored until ${restored.saved_at.toISOString()}, ` +
          `and its log goes on above that. Messages that waited or were under way then: ${restored.waiting}. They may have been sent since, and are sent again under the same ids`
      )

/** A migration may take, or wait for another's, any time. */
const migrating: Kind = { connections: 1, answersWithinMs: null }

/** Fails work without deadlines when the server is silent, which a second connection finds out. */
export const unlessSilent = <A, E>(
  server: Pick<Server, "connect">,
  work: Effect.Effect<A, E>,
  { everyMs, withinMs } = { everyMs: ASKED_EVERY_MS, withinMs: 2 * ASKED_EVERY_MS }
): Effect.Effect<A, E | QueryFailed> =>
  Effect.raceFirst(
    work,
    Effect.acquireUseRelease(
      Effect.promise(() => server.connect({ application_name: "posthaste start" }).catch(() => null)),
      (client) =>
        // The work itself says why there is no connection.
        client === null
          ? Effect.never
          : Effect.callback<never, QueryFailed>((silent) => {
              const question = { text: "select 1", query_timeout: withinMs }
              const timer = setInterval(
                () => client.query(question).catch((cause) => silent(Effect.fail(queryFailed(cause)))),
                everyMs
              )
              return Effect.sync(() => clearInterval(timer))
            }),
      (client) => Effect.sync(() => client?.connection.stream.destroy())
    )
  )

/** Answers the files that ran. */
export const migrateAt = (url: Redacted.Redacted, schema: string) =>
  Effect.scoped(
    Effect.flatMap(acquireServer(url, schema), (server) =>
      unlessSilent(server, Effect.mapError(migrate(server.pool(migrating).pg, schema), queryFailed))
    )
  )

const acquireServer = (url: Redacted.Redacted, schema: string) =>
  Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) =>
      serverAt(Redacted.value(url), schema, (line) => void Effect.runForkWith(context)(Effect.logWarning(line)))
    ),
    (server) => Effect.promise(server.close)
  )

const asText = { getTypeParser: () => (text: string) => text }

const { TIMESTAMPTZ } = pg.types.builtins
const dateOf = pg.types.getTypeParser(TIMESTAMPTZ)
const timeOf = (text: string) => DateTime.fromDateUnsafe(dateOf(text))
const withTimes: pg.CustomTypesConfig = {
  getTypeParser: (type: number) => (type === TIMESTAMPTZ ? timeOf : pg.types.getTypeParser(type))
}

export const connectionsOf = ({ ask }: Pick<Pool, "ask">): Connections => {
  const asking = <Rows>(query: pg.QueryConfig) =>
    Effect.callback<Rows, QueryFailed>((resume) =>
      ask<Rows>(query, (error, rows) => resume(error === null ? Effect.succeed(rows) : Effect.fail(queryFailed(error))))
    )
  return {
    query: (statement, values) => asking({ ...statement, values: [...values], types: withTimes }),
    rows: (statement, values) =>
      asking({ ...statement, values: [...values], rowMode: "array", types: asText } as pg.QueryConfig)
  }
}

const queryFailed = (cause: unknown): QueryFailed => new QueryFailed({ code: sqlState(cause), cause })

export const unavailable = <A, R>(effect: Effect.Effect<A, QueryFailed, R>): Effect.Effect<A, StoreUnavailable, R> =>
  Effect.mapError(effect, (cause) => new StoreUnavailable({ cause }))

export const reading = <Rows, A>(query: Effect.Effect<Rows, QueryFailed>, read: (rows: Rows) => A) =>
  unavailable(Effect.map(query, read))

const LISTEN_AGAIN_MS = 1_000
/** A listening connection does not notice silence by itself. */
const ASKED_EVERY_MS = 15_000
const ANSWERS_WITHIN_MS = 5_000

const listen = (server: Server, channel: string, heard: (text?: string) => void): Effect.Effect<void> =>
  Effect.acquireUseRelease(
    Effect.promise(() => server.connect({ application_name: "posthaste listen" }).catch(() => null)),
    (client) =>
      client === null
        ? Effect.void
        : Effect.callback<void>((lost) => {
            const broke = () => lost(Effect.void)
            client
              .on("notification", ({ payload }) => heard(payload))
              .on("error", broke)
              .on("end", broke)
            const question = { text: "select 1", query_timeout: ANSWERS_WITHIN_MS }
            const timer = setInterval(() => client.query(question).catch(broke), ASKED_EVERY_MS)
            // Notifications may have been missed.
            client.query({ ...question, text: `listen ${pg.escapeIdentifier(channel)}` }).then(() => heard(), broke)
            return Effect.sync(() => clearInterval(timer))
          }),
    (client) => Effect.sync(() => client?.connection.stream.destroy())
  ).pipe(Effect.andThen(Effect.sleep(LISTEN_AGAIN_MS)), Effect.forever)
