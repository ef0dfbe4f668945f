/**
 * A PostgreSQL server that belongs to one test, which may crash it, freeze it, fill its disk, back it up and restore it. Its
 * programs are those that come with Posthaste, or those of a directory such as `/usr/lib/postgresql/15/bin`. Whoever is root
 * runs it as another account, because PostgreSQL refuses root.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import pg from "pg"
import { type Account, accountFor, commandAs } from "../../src/adapters/embedded-postgres/account.ts"
import { findPrograms } from "../../src/adapters/embedded-postgres/cluster.ts"
import { lastingPort } from "./lastingPort.ts"
import { noteProcess } from "./leftovers.ts"
import { PATIENCE_MS, pause } from "./until.ts"

const USER = "posthaste"

export interface Programs {
  /** The path of `initdb`, `postgres`, `pg_dump` and whatever else there is. */
  readonly path: (program: string) => string
}

export const programsIn = (directory: string): Programs => ({ path: (program) => join(directory, program) })

/** They come with Posthaste: `initdb` and `postgres`, and no tools for backups. */
export const ownPrograms = async (): Promise<Programs> => {
  const found: { readonly [program: string]: string } = { ...(await Effect.runPromise(findPrograms)) }
  return { path: (program) => found[program]! }
}

export interface OwnPostgres {
  /** Of its database `postgres`. */
  readonly url: string
  readonly port: number
  readonly data: string
  readonly start: () => Promise<void>
  /** `fast` ends in good order; `immediate` is a crash: what was committed and is not on the disk yet is lost. */
  readonly stop: (how: "fast" | "immediate") => Promise<void>
  readonly isRunning: () => boolean
  /** SIGSTOP and SIGCONT to all its processes: its connections stay, and nothing answers. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** What it wrote to its log since it was started first. */
  readonly log: () => string
}

export interface Home {
  /** A new directory below the home, for the server's account. */
  readonly directory: (name: string) => string
  /** Runs one of the programs to its end under the server's account, and answers what it printed. */
  readonly run: (program: string, ...args: ReadonlyArray<string>) => Promise<string>
  /** Runs a shell script so, with these variables. */
  readonly shell: (script: string, variables: Readonly<Record<string, string>>) => Promise<void>
  /** An empty cluster. */
  readonly initialize: (name: string) => Promise<string>
  /** The server on a cluster that is there. It is not started yet. */
  readonly server: (data: string, settings?: Readonly<Record<string, string>>) => Promise<OwnPostgres>
}

/** `home` must be there. Its owner removes it, after the servers have ended. */
export const postgresHome = async (home: string, programs: Programs): Promise<Home> => {
  chmodSync(home, 0o711)
  const account = await Effect.runPromise(accountFor([home, programs.path("postgres")], null))
  const run = async (program: string, ...args: ReadonlyArray<string>) => {
    const command = commandAs(account, programs.path(program), args)
    const { stdout, stderr } = await promisify(execFile)(command.file, command.args, command.options)
    return `${stdout}${stderr}`
  }
  const directory = (name: string) => {
    const path = join(home, name)
    mkdirSync(path, { mode: 0o700 })
    if (account !== null) chownSync(path, account.uid, account.gid)
    return path
  }
  return {
    directory,
    run,
    shell: async (script, variables) => {
      const { file, args, options } = commandAs(account, "/bin/sh", ["-eu", "-c", script])
      await promisify(execFile)(file, args, { ...options, cwd: home, env: { ...options.env, ...variables } })
    },
    initialize: async (name) => {
      const data = directory(name)
      const given = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
      await run("initdb", `--pgdata=${data}`, `--username=${USER}`, ...given)
      return data
    },
    server: async (data, settings = {}) => serverOn(home, programs, account, data, await lastingPort(), settings)
  }
}

const serverOn = (
  home: string,
  programs: Programs,
  account: Account | null,
  data: string,
  port: number,
  settings: Readonly<Record<string, string>>
): OwnPostgres => {
  const url = `postgres://${USER}@127.0.0.1:${port}/postgres`
  let child: ChildProcess | null = null
  let log = ""
  const isRunning = () => child !== null && child.exitCode === null && child.signalCode === null

  const start = async () => {
    const given = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings, port: String(port) }
    const args = Object.entries(given).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const command = commandAs(account, programs.path("postgres"), ["-D", data, ...args])
    const started = spawn(command.file, command.args, {
      ...command.options,
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"]
    })
    child = started
    noteProcess(home, started.pid!)
    for (const stream of [started.stdout, started.stderr]) stream.on("data", (chunk) => (log += String(chunk)))
    const deadline = performance.now() + PATIENCE_MS
    while (!(await answers(url))) {
      if (!isRunning() || performance.now() > deadline)
        throw new Error(`PostgreSQL did not start:\n${log.slice(-2_000)}`)
      await pause(50)
    }
  }

  const signal = (name: NodeJS.Signals) => {
    if (!isRunning()) return
    for (const pid of [child!.pid!, ...childrenOf(child!.pid!)]) {
      try {
        process.kill(pid, name)
      } catch {
        // A backend that has ended meanwhile.
      }
    }
  }

  return {
    url,
    port,
    data,
    start,
    stop: async (how) => {
      if (!isRunning()) return
      const ended = once(child!, "close")
      child!.kill(how === "fast" ? "SIGINT" : "SIGQUIT")
      await ended
    },
    isRunning,
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    log: () => log
  }
}

const answers = async (url: string): Promise<boolean> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.query("select 1")
    return true
  } catch {
    return false
  } finally {
    client.connection.stream.destroy()
  }
}

const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((other) => parentOf(other) === pid)

const parentOf = (pid: number): number | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
  } catch {
    return null
  }
}
