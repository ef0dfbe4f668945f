/**
 * What tests leave behind. They write to directories that are named after the process that tests run in, and mark the
 * processes that they start with it. A run that was killed could not clean up after itself: the next does. A script that can
 * still act when it is stopped, or fails, does it itself.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { postmasterOf } from "../../src/adapters/embedded-postgres/postmaster.ts"

/** For the environment of processes that may not outlive this one. */
export const owned = { TEST_OWNER: String(process.pid) }

/** A new directory, as processes see it that run in it: links on the way to it are followed. */
export const temporaryDirectory = (): string =>
  realpathSync(mkdtempSync(join(tmpdir(), `posthaste-test-${process.pid}-`)))

/** A directory that is removed with the scope. Whoever runs in it must have ended by then. */
export const ownDirectory = Effect.acquireRelease(Effect.sync(temporaryDirectory), (directory) =>
  Effect.sync(() => remove(directory))
)

/** Notes a process that runs in `directory` (has it as its working directory), so that it can be ended with it. */
export const noteProcess = (directory: string, pid: number): void =>
  writeFileSync(join(directory, "pids"), `${pid}\n`, { flag: "a" })

export const removeLeftovers = (): void => removeWhatIsOf((owner) => !isAlive(owner))

/**
 * For a script: however this process ends, unless it is killed, what it started ends with it and its directories go. Ctrl-C and
 * SIGTERM end it at once; one that can do better has a listener of its own.
 */
export const leaveNothingBehind = (): void => {
  process.once("exit", () => removeWhatIsOf((owner) => owner === process.pid))
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    if (process.listenerCount(signal) === 0) process.once(signal, () => process.exit(130))
  }
}

const removeWhatIsOf = (isOwner: (pid: number) => boolean): void => {
  endProcessesMarked(isOwner)
  for (const name of readdirSync(tmpdir())) {
    const owner = /^posthaste-test-(\d+)-/.exec(name)?.[1]
    if (owner === undefined || !isOwner(Number(owner))) continue
    const directory = join(tmpdir(), name)
    endProcessesOf(directory)
    remove(directory)
  }
}

const endProcessesMarked = (isOwner: (pid: number) => boolean): void => {
  const pids = (textOf(() => readdirSync("/proc").join("\n")) ?? "").split("\n").filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    const environment = textOf(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? ""
    const owner = /(?:^|\0)TEST_OWNER=(\d+)(?:\0|$)/.exec(environment)?.[1]
    if (owner !== undefined && isOwner(Number(owner))) textOf(() => String(process.kill(Number(pid), "SIGKILL")))
  }
}

/** A pid may be somebody else's by now: only a process that still runs in the directory is ended. */
const endProcessesOf = (directory: string): void => {
  for (const cluster of [directory, join(directory, "postgres"), join(directory, "data", "postgres")]) {
    const server = postmasterOf(cluster)
    if (server !== null) textOf(() => String(process.kill(server.pid, "SIGQUIT")))
  }
  const noted = textOf(() => readFileSync(join(directory, "pids"), "utf8")) ?? ""
  for (const pid of noted.split("\n").filter((line) => line !== "")) {
    if (textOf(() => readlinkSync(`/proc/${pid}/cwd`)) === directory)
      // It may have ended meanwhile.
      textOf(() => String(process.kill(Number(pid), "SIGKILL")))
  }
}

const remove = (directory: string): void => {
  const mounted = (textOf(() => readFileSync("/proc/mounts", "utf8")) ?? "")
    .split("\n")
    .map((line) => line.split(" ")[1]!)
  for (const path of mounted) {
    // Lazily: what runs on it may not have ended yet.
    if (path?.startsWith(`${directory}/`)) textOf(() => String(execFileSync("umount", ["-l", path], { stdio: "pipe" })))
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const textOf = (read: () => string): string | null => Result.getOrNull(Result.try(read))
