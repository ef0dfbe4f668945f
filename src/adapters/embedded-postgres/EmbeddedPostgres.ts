/**
 * A real PostgreSQL server that comes with Posthaste, so that a first start needs no other step.
 *
 * - Its data is in `<directory>/postgres`, its log beside the data, its password in a file that only our account can read.
 *   It listens on a free port of the loopback address and nowhere else.
 * - One Posthaste process uses it at a time: the process holds an advisory lock for as long as its connection lives. The
 *   lock can't outlive its process, and a second process is refused.
 * - The server runs in a session of its own: Ctrl-C ends Posthaste, which drains and then stops the server.
 * - A server that a killed Posthaste left running is taken over. A server that ends while it is in use is started again on
 *   the same port.
 *
 * It leaves out backups, replication, upgrades to another major version, and Windows: DATABASE_URL is for these.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import pg from "pg"
import { commandAs, withRemedy } from "./account.ts"
import { type Cluster, files, filesIn, prepareCluster, USER } from "./cluster.ts"
import { EmbeddedPostgresFailed } from "./EmbeddedPostgresFailed.ts"
import { freePort } from "./freePort.ts"
import { disownStalePid, postmasterOf } from "./postmaster.ts"

export interface Options {
  readonly directory: string
  /** These server settings replace our own. */
  readonly settings?: Readonly<Record<string, string>>
}

const DATABASE = "posthaste"
/** The number of our advisory lock in the server's database `postgres`, where no other program takes locks. */
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
  // So many segments are kept and written over, which costs nothing; new ones must be made (see `initialize`).
  min_wal_size: "256MB",
  // Otherwise no more than a segment.
  wal_buffers: "4MB",
  // All rows of the queue tables are replaced within seconds.
  autovacuum_naptime: "10s",
  jit: "off",
  // A statement may hold the body of a message: statements stay out of the log.
  log_min_messages: "warning",
  log_checkpoints: "off",
  log_min_error_statement: "panic",
  log_error_verbosity: "terse"
}

interface Server {
  readonly cluster: Cluster
  readonly settings: Readonly<Record<string, string>>
  /** Once it is known it stays: a URL that was handed out is good after a restart too. */
  port: number | null
  /** The process, if the last start was ours. */
  child: Child | null
  /** The connection that holds the lock; null before we have the lock. */
  claim: Connection | null
}

interface Child {
  readonly process: ChildProcess
  /** The place in the log where this start begins. */
  readonly logOffset: number
}

interface Connection {
  readonly client: pg.Client
  readonly ended: Promise<void>
}

/** Starts the server, or takes over one that runs, and stops it when the scope closes. */
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
  return { url: urlOf(server.port, cluster.password, DATABASE) }
})

/**
 * The server that another Posthaste of this machine uses now, for a second look at its data. Null when none runs, or when it
 * does not say yet where it listens.
 */
export const running = (directory: string): Redacted.Redacted | null => {
  const { data, passwordFile } = filesIn(directory)
  const port = postmasterOf(data)?.port
  if (!port || !existsSync(passwordFile)) return null
  return urlOf(port, Redacted.make(readFileSync(passwordFile, "utf8").trim()), DATABASE)
}

/** Whether there are data to start on. */
export const hasData = (directory: string): boolean => existsSync(filesIn(directory).data)

const urlOf = (port: number | null, password: Redacted.Redacted, database: string): Redacted.Redacted =>
  Redacted.make(`postgres://${USER}:${Redacted.value(password)}@127.0.0.1:${port}/${database}`)

/** The connection of the lock ends when the server ends. */
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
    // Even if we started it: it serves the process that has the lock, and that process will stop it.
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
      const connection = yield* connect(server, running.port)
      if (connection !== null) {
        // Not before it answers there: one that could not have the port ends, and the next start takes another.
        server.port = running.port
        return connection
      }
      // The server logs every caller that it refuses, and a recovery can take minutes.
      yield* Effect.sleep("80 millis")
    } else if (running === null && (server.child === null || hasEnded(server.child))) {
      // A second start helps when another program took the port, when children of a killed server still lived, or when
      // another process started the server first.
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
  server: Server,
  port: number
): Effect.fn.Return<Connection | null, EmbeddedPostgresFailed> {
  const client = new pg.Client({
    connectionString: Redacted.value(urlOf(port, server.cluster.password, "postgres")),
    connectionTimeoutMillis: 5000,
    application_name: "posthaste: lock"
  })
  const ended = new Promise<void>((resolve) => client.once("end", () => resolve()))
  // The end of the connection is enough to know; an error without a listener would end this process.
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

/** False when another process has the lock. The server takes a moment to notice that the last holder is gone. */
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
    const command = commandAs(cluster.account, cluster.programs.postgres, [
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

/** Why the server gave up, in its own words. */
const startupErrorOf = ({ cluster, child }: Server): string => {
  const fatal = textFrom(cluster.log, child?.logOffset ?? 0)
    .split("\n")
    .findLast((line) => /FATAL|error/.test(line))
  const reason = withRemedy(fatal?.replace(/^.*FATAL: */, "") ?? "it ended without a word")
  return `The embedded PostgreSQL does not start: ${reason} (log: ${cluster.log})`
}

const textFrom = (file: string, offset: number): string => {
  const descriptor = openSync(file, "r")
  const buffer = Buffer.alloc(Math.min(64 * 1024, fstatSync(descriptor).size - offset))
  readSync(descriptor, buffer, 0, buffer.length, offset)
  closeSync(descriptor)
  return buffer.toString("utf8")
}

/** A fast shutdown; a server that takes too long is cut off and recovers at its next start. */
const stop = Effect.fnUntraced(function* ({ cluster, claim, child }: Server) {
  // We neither hold its lock nor started it: it serves another process.
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
