/** The server's place on disk: made once, checked at every start. */
import { randomBytes } from "node:crypto"
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Redacted, Result } from "effect"
import { type Account, accountFor, commandAs, run } from "./account.ts"
import { type Binaries, findBinaries, MAJOR_VERSION } from "./binaries.ts"
import { EmbeddedPostgresFailed } from "./EmbeddedPostgresFailed.ts"

export interface Cluster {
  /** PostgreSQL's own data directory. */
  readonly data: string
  readonly log: string
  readonly passwordFile: string
  readonly password: Redacted.Redacted
  readonly binaries: Binaries
  readonly account: Account | null
}

/** The superuser; the password is its. */
export const USER = "posthaste"

const LOG_MAX_BYTES = 8 * 1024 * 1024
const ASIDE = "postgres-new-"

/** `sync` false skips flushing the new files to disk: for tests. */
export const prepareCluster = Effect.fn("embedded.prepareCluster")(function* (
  directory: string,
  sync: boolean
): Effect.fn.Return<Cluster, EmbeddedPostgresFailed> {
  const home = resolve(directory)
  const data = join(home, "postgres")
  const binaries = yield* findBinaries
  // The server's account has to pass through; every file in here is closed by itself.
  yield* files(() => mkdirSync(home, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 }))
  const owner = yield* files(() => (existsSync(data) ? statSync(data) : null))
  const account = yield* accountFor([home, binaries.postgres], owner)
  const passwordFile = join(home, "postgres-password")
  const password = yield* passwordIn(passwordFile, owner !== null)
  const cluster = { data, log: join(home, "postgres.log"), passwordFile, password, binaries, account }
  if (owner === null) yield* initialize(home, cluster, sync)
  const version = (yield* files(() => readFileSync(join(data, "PG_VERSION"), "utf8"))).trim()
  if (version !== MAJOR_VERSION) {
    return yield* new EmbeddedPostgresFailed({
      message: `The data in ${data} is PostgreSQL ${version}'s and this is PostgreSQL ${MAJOR_VERSION}: dump it with ${version} and choose another POSTHASTE_DATA_DIR`
    })
  }
  yield* files(() => rotate(cluster.log))
  return cluster
})

const passwordIn = Effect.fnUntraced(function* (
  file: string,
  isRequired: boolean
): Effect.fn.Return<Redacted.Redacted, EmbeddedPostgresFailed> {
  if (!(yield* files(() => existsSync(file)))) {
    if (isRequired) {
      return yield* new EmbeddedPostgresFailed({
        message: `${file} is missing, and the data beside it does not open without it`
      })
    }
    yield* files(() => writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600 }))
  }
  return Redacted.make((yield* files(() => readFileSync(file, "utf8"))).trim())
})

/** Made aside and moved into place whole: a start that is killed half-way leaves nothing that looks ready. */
const initialize = Effect.fnUntraced(function* (home: string, cluster: Cluster, sync: boolean) {
  const aside = join(home, `${ASIDE}${process.pid}`)
  const passwordFile = join(aside, "password")
  const data = join(aside, "data")
  yield* files(() => {
    removeLeftovers(home)
    mkdirSync(aside, { mode: 0o700 })
    writeFileSync(passwordFile, Redacted.value(cluster.password), { mode: 0o600 })
    if (cluster.account !== null) {
      for (const path of [aside, passwordFile]) chownSync(path, cluster.account.uid, cluster.account.gid)
    }
  })
  yield* run(
    commandAs(cluster.account, cluster.binaries.initdb, [
      `--pgdata=${data}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // PostgreSQL's own C.UTF-8: the same order everywhere, whatever locales the machine has.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      ...(sync ? [] : ["--no-sync"])
    ])
  )
  yield* files(() => renameSync(data, cluster.data)).pipe(
    // Another process was first: its cluster is as good as ours.
    Effect.catch((error) => (existsSync(cluster.data) ? Effect.void : Effect.fail(error)))
  )
  yield* files(() => rmSync(aside, { recursive: true, force: true }))
})

const removeLeftovers = (home: string): void => {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(ASIDE)) continue
    const maker = Number(name.slice(ASIDE.length))
    const isAlive = maker !== process.pid && Result.isSuccess(Result.try(() => process.kill(maker, 0)))
    if (!isAlive) rmSync(join(home, name), { recursive: true, force: true })
  }
}

/** Keeps one older log, so that many starts can't fill the disk. */
const rotate = (log: string): void => {
  if (existsSync(log) && statSync(log).size > LOG_MAX_BYTES) renameSync(log, `${log}.1`)
}

export const files = <A>(use: () => A): Effect.Effect<A, EmbeddedPostgresFailed> =>
  Effect.try({ try: use, catch: (cause) => new EmbeddedPostgresFailed({ message: (cause as Error).message }) })
