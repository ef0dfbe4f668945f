/**
 * The PostgreSQL server that comes with Posthaste, on a free loopback port. An advisory lock admits one process. The
 * server has its own session, so that Ctrl-C lets Posthaste drain first; one left by a killed process is taken over,
 * one that crashes is restarted.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import pg from "pg"
import { commandAs, type EmbeddedPostgresFailed, failed, withRemedy } from "./account.ts"
import { type Cluster, files, filesIn, prepareCluster, USER } from "./cluster.ts"
import { freePort } from "./freePort.ts"
import { disownStalePid, postmasterOf } from "./postmaster.ts"

interface Options {
  readonly directory: string
  readonly settings?: Readonly<Record<string, string>>
}

const DATABASE = "posthaste"
/** Advisory lock in the database `postgres`, where no other program takes locks. */
const LOCK = 7_057_457

/** Recovery after a crash can take minutes. */
const READY_WITHIN_MS = 300_000
const STOPPED_WITHIN_MS = 30_000
const STARTS_MAX = 6

/** For a small machine; fsync and synchronous_commit stay on. */
const settingsDefault = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "60",
  shared_buffers: "128MB",
  max_wal_size: "2GB",
  // Keeps segments for reuse: making new ones is slow (see `initialize`).
  min_wal_size: "256MB",
  // Default: no more than a segment.
  wal_buffers: "4MB",
  // Queue tables turn over within seconds.
  autovacuum_naptime: "10s",
  jit: "off",
  // Keeps statements, which may hold bodies, out of the log.
  log_min_messages: "warning",
  log_checkpoints: "off",
  log_min_error_statement: "panic",
  log_error_verbosity: "terse"
}

interface Server {
  readonly cluster: Cluster
  readonly settings: Readonly<Record<string, string>>
  /** Kept once known: URLs handed out stay valid after a restart. */
  port: number | null
  /** Set when the last start was by this process. */
  child: Child | null
  claim: Connection | null
}

interface Child {
  readonly process: ChildProcess
  /** Offset in the log at which this start begins. */
  readonly logOffset: number
}

interface Connection {
  readonly client: pg.Client
  readonly ended: Promise<void>
}

/** Starts or takes over the server; stops it with the scope. */
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

/** URL of the server that another Posthaste of this machine uses; null when none listens. */
export const running = (directory: string): Redacted.Redacted | null => {
  const { data, passwordFile } = filesIn(directory)
  const port = postmasterOf(data)?.port
  if (!port || !existsSync(passwordFile)) return null
  return urlOf(port, Redacted.make(readFileSync(passwordFile, "utf8").trim()), DATABASE)
}

export const hasData = (directory: string): boolean => existsSync(filesIn(directory).data)

const urlOf = (port: number | null, password: Redacted.Redacted, database: string): Redacted.Redacted =>
  Redacted.make(`postgres://${USER}:${Redacted.value(password)}@127.0.0.1:${port}/${database}`)

/** The lock's connection ends with the server. */
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
    // Its lock holder will stop it, although it was started here.
    server.child = null
    return yield* failed(
      "Another Posthaste is using this data directory: stop it, or choose another POSTHASTE_DATA_DIR"
    )
  }
  server.claim = connection
  return connection
})

const reach = Effect.fnUntraced(function* (server: Server): Effect.fn.Return<Connection, EmbeddedPostgresFailed> {
  const deadline = performance.now() + READY_WITHIN_MS
  let starts = 0
  while (performance.now() < deadline) {
    const running = postmasterOf(server.cluster.data)
    if (running?.port) {
      const connection = yield* connect(server, running.port)
      if (connection !== null) {
        // Not earlier: a server that can't have the port ends, and the next start takes another.
        server.port = running.port
        return connection
      }
      // The server logs each refused caller, and recovery can take minutes.
      yield* Effect.sleep("80 millis")
    } else if (running === null && (server.child === null || hasEnded(server.child))) {
      // A second start helps when the port was taken, children of a killed server lived, or another process was faster.
      if (starts === STARTS_MAX) return yield* failed(startupErrorOf(server))
      if (starts++ > 0) yield* Effect.sleep("500 millis")
      server.child = yield* launch(server, server.port ?? (yield* freePort))
    }
    yield* Effect.sleep("20 millis")
  }
  return yield* failed(
    `The embedded PostgreSQL did not answer within ${READY_WITHIN_MS / 1000} s (log: ${server.cluster.log})`
  )
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
  // An error without a listener would end this process.
  client.on("error", () => {})
  return yield* Effect.tryPromise({ try: () => client.connect(), catch: codeOf }).pipe(
    Effect.as({ client, ended }),
    Effect.catch((code) =>
      code !== WRONG_PASSWORD
        ? Effect.succeed(null)
        : Effect.fail(
            failed(
              `The PostgreSQL that runs on ${server.cluster.data} does not accept the password in ${server.cluster.passwordFile}`
            )
          )
    )
  )
})

const codeOf = (cause: unknown): string | null =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : null

/** False when another process has the lock. The server notices a lost holder with a delay. */
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
    catch: (cause) => failed(`The embedded PostgreSQL: ${(cause as Error).message}`)
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
    // Detached: signals from the terminal must not reach the server.
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

/** Server's own words for giving up. */
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

/** Fast shutdown; a server that takes too long is killed and recovers later. */
const stop = Effect.fnUntraced(function* ({ cluster, claim, child }: Server) {
  // Neither locked nor started here: it serves another process.
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
