/**
 * A real PostgreSQL server that comes with Posthaste, for a first start without any other step.
 *
 * - Its data lies in `<directory>/postgres`, its log beside it, its password in a file only we can read.
 *   It listens on a free port of the loopback address and nowhere else.
 * - One Posthaste process at a time: whoever uses the server holds an advisory lock for as long as its
 *   connection lives. The lock can't outlive its process, and a second process is refused.
 * - The server runs in a session of its own: Ctrl-C ends Posthaste, which drains and then stops the server.
 * - The server that a killed Posthaste left running is taken over. A server that goes away while it is in
 *   use is started again, on the same port.
 *
 * It leaves out backups, replication, upgrades to another major version, and Windows: that is what
 * DATABASE_URL is for.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import pg from "pg"
import { commandAs } from "./account.ts"
import { type Cluster, files, prepareCluster, USER } from "./cluster.ts"
import { EmbeddedPostgresFailed } from "./EmbeddedPostgresFailed.ts"
import { freePort } from "./freePort.ts"
import { disownStalePid, postmasterOf } from "./postmaster.ts"

export interface Options {
  readonly directory: string
  /** Server settings that go before the ones below. */
  readonly settings?: Readonly<Record<string, string>>
}

export const DATABASE = "posthaste"
/** Names our lock among advisory locks of the server's `postgres` database, which nobody else uses. */
const LOCK = 7_057_457

/** After a crash the server may have a lot to recover before it answers. */
const READY_WITHIN_MS = 300_000
const STOPPED_WITHIN_MS = 30_000
const STARTS_MAX = 6

/** For a small machine. fsync and synchronous_commit are on, as PostgreSQL has them. */
const settingsDefault = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "60",
  shared_buffers: "128MB",
  max_wal_size: "2GB",
  // Queue tables turn over completely within seconds.
  autovacuum_naptime: "10s",
  jit: "off",
  // What a statement carries may be a body: it stays out of the log.
  log_min_messages: "warning",
  log_checkpoints: "off",
  log_min_error_statement: "panic",
  log_error_verbosity: "terse"
}

interface Server {
  readonly cluster: Cluster
  readonly settings: Readonly<Record<string, string>>
  /** Set once known and kept from then on: whoever has our URL keeps it over a restart. */
  port: number | null
  /** Ours, if it was us who started it last. */
  child: Child | null
  /** The connection that holds the lock; null until we have it. */
  claim: Connection | null
}

interface Child {
  readonly process: ChildProcess
  /** Where in the log this start begins. */
  readonly logOffset: number
}

interface Connection {
  readonly client: pg.Client
  readonly ended: Promise<void>
}

/** Starts the server, or takes over the one that runs, and stops it when the scope closes. */
export const start = Effect.fn("EmbeddedPostgres.start")(function* (
  options: Options
): Effect.fn.Return<{ readonly url: Redacted.Redacted }, EmbeddedPostgresFailed, Scope.Scope> {
  const settings = { ...settingsDefault, ...options.settings }
  const cluster = yield* prepareCluster(options.directory, options.settings?.["fsync"] !== "off")
  const server: Server = { cluster, settings, port: null, child: null, claim: null }
  yield* Effect.addFinalizer(() => stop(server))
  const connection = yield* open(server)
  yield* createDatabase(connection.client)
  yield* Effect.forkScoped(keepRunning(server, connection))
  return { url: urlOf(server, DATABASE) }
})

const urlOf = ({ cluster, port }: Server, database: string): Redacted.Redacted =>
  Redacted.make(`postgres://${USER}:${Redacted.value(cluster.password)}@127.0.0.1:${port}/${database}`)

/** The lock's connection ends with the server, so its end is the news that the server went away. */
const keepRunning = Effect.fnUntraced(function* (server: Server, first: Connection) {
  let connection = first
  while (true) {
    yield* Effect.promise(() => connection.ended)
    yield* Effect.logWarning(`The embedded PostgreSQL went away (log: ${server.cluster.log}); starting it again`)
    connection = yield* open(server).pipe(
      Effect.tapError((error) => Effect.logError(error.message)),
      Effect.retry({ schedule: Schedule.spaced("1 second") })
    )
  }
})

const open = Effect.fnUntraced(function* (server: Server): Effect.fn.Return<Connection, EmbeddedPostgresFailed> {
  const connection = yield* reach(server)
  const claimed = yield* claim(connection.client).pipe(
    Effect.onError(() => Effect.promise(() => connection.client.end()))
  )
  if (!claimed) {
    yield* Effect.promise(() => connection.client.end())
    // Even if it was us who started it: it serves the process that has the lock, which will stop it.
    server.child = null
    return yield* new EmbeddedPostgresFailed({
      message: "Another Posthaste is using this data directory: stop it, or choose another POSTHASTE_DATA_DIR"
    })
  }
  server.claim = connection
  return connection
})

/** Connects to the server that runs, or to the one it starts when none does. */
const reach = Effect.fnUntraced(function* (server: Server): Effect.fn.Return<Connection, EmbeddedPostgresFailed> {
  const deadline = performance.now() + READY_WITHIN_MS
  let starts = 0
  while (performance.now() < deadline) {
    const running = postmasterOf(server.cluster.data)
    if (running?.port) {
      server.port = running.port
      const connection = yield* connect(server)
      if (connection !== null) return connection
      // It logs every caller it sends away, and a recovery can take minutes.
      yield* Effect.sleep("80 millis")
    } else if (running === null && (server.child === null || hasEnded(server.child))) {
      // A second start helps when the port was taken in between, when the children of a killed server had
      // not all gone yet, or when another process started it first.
      if (starts === STARTS_MAX) return yield* new EmbeddedPostgresFailed({ message: startupErrorOf(server) })
      if (starts++ > 0) yield* Effect.sleep("500 millis")
      server.child = yield* launch(server, server.port ?? (yield* freePort))
    }
    yield* Effect.sleep("20 millis")
  }
  return yield* new EmbeddedPostgresFailed({
    message: `The embedded PostgreSQL did not answer within ${READY_WITHIN_MS / 1000} s (log: ${server.cluster.log})`
  })
})

const WRONG_PASSWORD = "28P01"

/** Null while the server starts, recovers or shuts down. */
const connect = Effect.fnUntraced(function* (
  server: Server
): Effect.fn.Return<Connection | null, EmbeddedPostgresFailed> {
  const client = new pg.Client({
    connectionString: Redacted.value(urlOf(server, "postgres")),
    connectionTimeoutMillis: 5000,
    application_name: "posthaste: lock"
  })
  const ended = new Promise<void>((resolve) => client.once("end", () => resolve()))
  // Its end is what counts; but an error nobody listens to would end this process.
  client.on("error", () => {})
  return yield* Effect.tryPromise({ try: () => client.connect(), catch: codeOf }).pipe(
    Effect.as({ client, ended }),
    Effect.catch((code) =>
      code !== WRONG_PASSWORD
        ? Effect.succeed(null)
        : Effect.fail(
            new EmbeddedPostgresFailed({
              message: `The PostgreSQL that runs on ${server.cluster.data} does not accept the password in ${server.cluster.passwordFile}`
            })
          )
    )
  )
})

const codeOf = (cause: unknown): string | null =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : null

/** False when another process has the lock. The server takes a moment to notice that its last holder is gone. */
const claim = Effect.fnUntraced(function* (client: pg.Client): Effect.fn.Return<boolean, EmbeddedPostgresFailed> {
  for (let tries = 0; tries < 20; tries++) {
    const [row] = yield* query<{ held: boolean }>(client, `select pg_try_advisory_lock(${LOCK}) as held`)
    if (row?.held) return true
    yield* Effect.sleep("100 millis")
  }
  return false
})

const createDatabase = Effect.fnUntraced(function* (client: pg.Client) {
  const [found] = yield* query(client, `select 1 from pg_database where datname = '${DATABASE}'`)
  if (found === undefined) yield* query(client, `create database ${DATABASE}`)
})

const query = <Row extends object>(client: pg.Client, text: string) =>
  Effect.tryPromise({
    try: async () => (await client.query<Row>(text)).rows,
    catch: (cause) => new EmbeddedPostgresFailed({ message: `The embedded PostgreSQL: ${(cause as Error).message}` })
  })

const hasEnded = ({ process }: Child): boolean => process.exitCode !== null || process.signalCode !== null

const launch = ({ cluster, settings }: Server, port: number): Effect.Effect<Child, EmbeddedPostgresFailed> =>
  files(() => {
    disownStalePid(cluster.data)
    const given = Object.entries({ ...settings, port: String(port) })
    const command = commandAs(cluster.account, cluster.binaries.postgres, [
      "-D",
      cluster.data,
      ...given.flatMap(([name, value]) => ["-c", `${name}=${value}`])
    ])
    const log = openSync(cluster.log, "a", 0o600)
    const logOffset = fstatSync(log).size
    // Detached: a signal from the terminal reaches us, and the server only through us.
    const process = spawn(command.file, command.args, {
      ...command.options,
      detached: true,
      stdio: ["ignore", log, log]
    })
    process.on("error", () => {})
    process.unref()
    closeSync(log)
    return { process, logOffset }
  })

/** Why it gave up, in its own words. */
const startupErrorOf = ({ cluster, child }: Server): string => {
  const fatal = textFrom(cluster.log, child?.logOffset ?? 0)
    .split("\n")
    .findLast((line) => /FATAL|error/.test(line))
  const reason = fatal?.replace(/^.*FATAL: */, "") ?? "it ended without a word"
  return `The embedded PostgreSQL does not start: ${reason} (log: ${cluster.log})`
}

const textFrom = (file: string, offset: number): string => {
  const descriptor = openSync(file, "r")
  const buffer = Buffer.alloc(Math.min(64 * 1024, fstatSync(descriptor).size - offset))
  readSync(descriptor, buffer, 0, buffer.length, offset)
  closeSync(descriptor)
  return buffer.toString("utf8")
}

/** Fast shutdown; a server that does not manage in time is cut off and recovers at its next start. */
const stop = Effect.fnUntraced(function* ({ cluster, claim, child }: Server) {
  // Neither claimed nor started by us: it serves somebody else.
  if (claim === null && (child === null || hasEnded(child))) return
  if (claim !== null) yield* Effect.promise(() => claim.client.end())
  const signals = [
    ["SIGINT", STOPPED_WITHIN_MS],
    ["SIGQUIT", 5_000]
  ] as const
  for (const [signal, withinMs] of signals) {
    const running = postmasterOf(cluster.data)
    if (running === null) return
    yield* Effect.sync(() => process.kill(running.pid, signal))
    const deadline = performance.now() + withinMs
    while (performance.now() < deadline && postmasterOf(cluster.data) !== null) yield* Effect.sleep("20 millis")
  }
})
