/** A script that starts servers is stopped while they run: they end with it, and nothing stays in the temporary directory. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { until } from "../servers/until.ts"

const root = join(import.meta.dirname, "../..")
let home = ""
let running: ChildProcess | null = null

afterEach(() => {
  running?.kill("SIGKILL")
  for (const pid of processesIn(home)) {
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // It has ended meanwhile.
    }
  }
  rmSync(home, { recursive: true, force: true })
})

/** Whose working directory or data is in it: the name of the directory is in what they were started with. */
const processesIn = (directory: string): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => ["cmdline", "environ"].some((file) => textOf(`/proc/${pid}/${file}`).includes(directory)))
    .map(Number)

const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

const isPostgres = (pid: number) => textOf(`/proc/${pid}/cmdline`).includes("postgres")

const launch = (script: string, ...args: ReadonlyArray<string>) => {
  home = temporaryDirectory()
  running = spawn(process.execPath, [join(root, script), ...args], {
    cwd: root,
    env: { PATH: process.env["PATH"], TMPDIR: home },
    stdio: "ignore"
  })
  return running
}

describe("a script that is stopped", () => {
  it.each([
    ["test/chaos/run.ts", ["--minutes", "5", "--only", "kill"], ["SIGINT", "SIGINT"]],
    ["bench/run.ts", ["--only", "f", "--quick"], ["SIGTERM"]],
    ["test/fuzz/run.ts", ["--requests", "1000000"], ["SIGINT"]]
  ] as const)("leaves no server behind: %s", async (script, args, signals) => {
    const child = launch(script, ...args)
    const ended = once(child, "exit")
    await until("a server of its own", () => processesIn(home).some(isPostgres))
    for (const signal of signals) {
      child.kill(signal)
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    // What it was doing may have failed first, because its server went away.
    const [code] = await ended
    expect([1, 130]).toContain(code)
    await until("the end of all that it started", () => processesIn(home).length === 0)
    await until("an empty directory", () => readdirSync(home).length === 0)
  })
})
