import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import pg from "pg"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { postmasterOf } from "../../../src/adapters/embedded-postgres/postmaster.ts"
import { owned, temporaryDirectory } from "../../servers/leftovers.ts"
import { compileCache } from "../../servers/posthaste.ts"

let directory: string
let processes: Array<ChildProcess> = []

/** mkdtemp makes a directory only its owner may enter: as root, the server's own account can't. */
beforeEach(() => {
  directory = join(temporaryDirectory(), "data")
})

afterEach(async () => {
  for (const process of processes) process.kill("SIGKILL")
  processes = []
  await killPostmaster()
  rmSync(join(directory, ".."), { recursive: true, force: true })
})

const postmasterPid = () => postmasterOf(join(directory, "postgres"))?.pid

const killPostmaster = async () => {
  const pid = postmasterPid()
  if (pid === undefined) return
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has ended meanwhile.
  }
  while (postmasterPid() === pid) await new Promise((resolve) => setTimeout(resolve, 20))
}

interface Serving {
  readonly child: ChildProcess
  readonly exited: Promise<unknown>
  readonly printed: () => string
  readonly url: string
  readonly failure: string | null
}

/** A Posthaste-like process in a process group of its own, as a terminal would start it. */
const serve = async (): Promise<Serving> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve.ts"), directory], {
    detached: true,
    env: { ...process.env, ...compileCache, ...owned },
    stdio: ["ignore", "pipe", "inherit"]
  })
  processes.push(child)
  const exited = once(child, "close")
  let text = ""
  child.stdout.on("data", (chunk) => {
    text += String(chunk)
  })
  for (;;) {
    const [, said, rest] = /^(url|failed) (.+)\n/m.exec(text) ?? []
    const serving = { child, exited, printed: () => text }
    if (said === "url") return { ...serving, url: rest!, failure: null }
    if (said === "failed") return { ...serving, url: "", failure: rest! }
    if (child.exitCode !== null) throw new Error(`the process ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const ask = async (url: string, text: string): Promise<Array<Record<string, unknown>>> => {
  const client = new pg.Client({ connectionString: url })
  client.on("error", () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const endByCtrlC = async ({ child, exited }: Serving) => {
  process.kill(-child.pid!, "SIGINT")
  await exited
}

/** Files of a server that runs come and go: what went during a copy is left out by the next. */
const copyRunning = (from: string, to: string, tries = 20): void => {
  try {
    cpSync(from, to, { recursive: true, preserveTimestamps: true })
  } catch (error) {
    if ((error as { readonly code?: string }).code !== "ENOENT" || tries === 0) throw error
    rmSync(to, { recursive: true, force: true })
    copyRunning(from, to, tries - 1)
  }
}

const log = () => readFileSync(join(directory, "postgres.log"), "utf8")

describe("the embedded server", () => {
  it("stops cleanly at Ctrl-C and has its data at the next start", async () => {
    const first = await serve()
    await ask(first.url, "create table kept as select 42 as answer")
    await endByCtrlC(first)
    expect(postmasterPid()).toBeUndefined()
    const second = await serve()
    expect(await ask(second.url, "select answer from kept")).toEqual([{ answer: 42 }])
    expect(log()).not.toContain("not properly shut down")
  })

  it("outlives Ctrl-C until whoever uses it has drained", async () => {
    const serving = await serve()
    await endByCtrlC(serving)
    expect(serving.printed()).toContain("drained")
  })

  it("is durable and speaks UTF-8", async () => {
    const { url } = await serve()
    const [settings] = await ask(
      url,
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit,
              current_setting('server_encoding') as encoding, current_setting('data_checksums') as checksums`
    )
    expect(settings).toEqual({ fsync: "on", commit: "on", encoding: "UTF8", checksums: "on" })
  })

  it("opens only with the password, which only its owner can read", async () => {
    const { url } = await serve()
    expect(statSync(join(directory, "postgres-password")).mode & 0o777).toBe(0o600)
    await expect(ask(url.replace(/:[^:@]+@/, ":wrong@"), "select 1")).rejects.toThrow("password authentication failed")
  })

  it("is taken over from a process that was killed", async () => {
    const first = await serve()
    const pid = postmasterPid()
    first.child.kill("SIGKILL")
    await first.exited
    const second = await serve()
    expect(second.failure).toBeNull()
    expect(postmasterPid()).toBe(pid)
    await endByCtrlC(second)
    expect(postmasterPid()).toBeUndefined()
  })

  it("refuses a second process in one line and keeps serving the first", async () => {
    const first = await serve()
    const second = await serve()
    expect(second.failure).toBe(
      "Another Posthaste is using this data directory: stop it, or choose another POSTHASTE_DATA_DIR"
    )
    await second.exited
    expect(await ask(first.url, "select 1 as one")).toEqual([{ one: 1 }])
  })

  it("lets one of two processes that start together win", async () => {
    const both = await Promise.all([serve(), serve()])
    expect(both.filter(({ failure }) => failure === null)).toHaveLength(1)
    const winner = both.find(({ failure }) => failure === null)!
    expect(await ask(winner.url, "select 1 as one")).toEqual([{ one: 1 }])
  })

  it("comes back on the same port when it is killed under a running process, with what was committed", async () => {
    const { url } = await serve()
    await ask(url, "create table kept as select 42 as answer")
    await killPostmaster()
    const answer = await new Promise((resolve) => {
      const retry = (): void => void ask(url, "select answer from kept").then(resolve, () => setTimeout(retry, 100))
      retry()
    })
    expect(answer).toEqual([{ answer: 42 }])
  })

  it("starts although the pid in a stale lock file is another process by now", async () => {
    const first = await serve()
    const lockFile = join(directory, "postgres", "postmaster.pid")
    const lines = readFileSync(lockFile, "utf8").split("\n")
    first.child.kill("SIGKILL")
    await first.exited
    await killPostmaster()
    // Only a process of the server's own account could be another server.
    const { uid, gid } = statSync(lockFile)
    const other = spawn("sleep", ["60"], { uid, gid, cwd: "/" })
    processes.push(other)
    writeFileSync(lockFile, [String(other.pid), ...lines.slice(1)].join("\n"))
    const second = await serve()
    expect(second.failure).toBeNull()
  })

  it("starts although the pid in a stale lock file is another PostgreSQL by now", async () => {
    await endByCtrlC(await serve())
    const mine = directory
    const lockFile = join(mine, "postgres", "postmaster.pid")
    // Another server, which has the pid of the one that died here.
    directory = join(mine, "..", "other")
    const other = await serve()
    const lines = readFileSync(join(directory, "postgres", "postmaster.pid"), "utf8").split("\n")
    const { uid, gid } = statSync(join(mine, "postgres"))
    // And the data were moved here since.
    writeFileSync(lockFile, [lines[0], join(mine, "..", "before", "postgres"), ...lines.slice(2)].join("\n"))
    chownSync(lockFile, uid, gid)
    const theirs = directory
    directory = mine
    const { failure, url } = await serve()
    expect(failure).toBeNull()
    expect(await ask(url, "select current_setting('data_directory') as at")).toEqual([{ at: join(mine, "postgres") }])
    expect(await ask(other.url, "select current_setting('data_directory') as at")).toEqual([
      { at: join(theirs, "postgres") }
    ])
    await endByCtrlC(other)
  })

  it("is not started on a copy that was made while it ran, and does not write to the original", async () => {
    const first = await serve()
    const original = directory
    directory = join(original, "..", "copy")
    copyRunning(original, directory)
    const copied = await serve()
    expect(copied.failure).toContain(`was copied from ${join(original, "postgres")} while PostgreSQL ran there`)
    directory = original
    expect(await ask(first.url, "select 1 as one")).toEqual([{ one: 1 }])
  })

  it("says once that its data come from a place where it did not end in order", async () => {
    const moveTo = (name: string) => {
      const to = join(directory, "..", name)
      renameSync(directory, to)
      directory = to
    }
    const first = await serve()
    const before = join(directory, "postgres")
    first.child.kill("SIGKILL")
    await first.exited
    await killPostmaster()
    moveTo("moved")
    const moved = await serve()
    expect(moved.failure).toBeNull()
    expect(moved.printed()).toContain(`was at ${before} before, where its PostgreSQL did not end in order`)
    await endByCtrlC(moved)
    // What was stopped first, and moved or copied then, is whole.
    moveTo("stopped")
    const stopped = await serve()
    expect(stopped.failure).toBeNull()
    expect(stopped.printed()).not.toContain("did not end in order")
  })

  it("says that its password is gone instead of waiting", async () => {
    await endByCtrlC(await serve())
    writeFileSync(join(directory, "postgres-password"), "")
    expect((await serve()).failure).toMatch(
      /postgres-password is empty, and the data beside it does not open without it/
    )
    rmSync(join(directory, "postgres-password"))
    expect((await serve()).failure).toMatch(/postgres-password is missing, and the data beside it does not open/)
    expect(existsSync(join(directory, "postgres-password"))).toBe(false)
  })

  it("says that a server which was left running has another password, instead of waiting for it", async () => {
    const first = await serve()
    first.child.kill("SIGKILL")
    await first.exited
    writeFileSync(join(directory, "postgres-password"), "another")
    expect((await serve()).failure).toMatch(
      /^The PostgreSQL that runs on \S+ does not accept the password in \S+postgres-password$/
    )
  })

  it("says what to do about a password that a first start left empty", async () => {
    mkdirSync(directory, { recursive: true, mode: 0o711 })
    writeFileSync(join(directory, "postgres-password"), "\n")
    expect((await serve()).failure).toMatch(/postgres-password is empty: delete it, and the next start makes another$/)
  })

  it("says that the data is another version's instead of touching it", async () => {
    await endByCtrlC(await serve())
    writeFileSync(join(directory, "postgres", "PG_VERSION"), "17\n")
    const { failure } = await serve()
    expect(failure).toMatch(/is PostgreSQL 17's and this is PostgreSQL 18/)
  })

  it("gives up with the server's own words when it can't start", async () => {
    await endByCtrlC(await serve())
    writeFileSync(join(directory, "postgres", "postgresql.auto.conf"), "no_such_setting = 1\n")
    expect((await serve()).failure).toMatch(/^The embedded PostgreSQL does not start: .+ \(log: \S+postgres\.log\)$/)
  })
})
