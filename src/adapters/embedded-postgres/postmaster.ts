/** What `postmaster.pid` says about a running server, and whether that is still true. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"

export interface Postmaster {
  readonly pid: number
  /** Null while the server has not said where it listens. */
  readonly port: number | null
}

const fileOf = (cluster: string) => join(cluster, "postmaster.pid")

/** Null when no server runs on `cluster`, whatever was left behind. */
export const postmasterOf = (cluster: string): Postmaster | null => {
  const lines = linesOf(fileOf(cluster))
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0 || !isPostgres(pid)) return null
  return { pid, port: Number(lines[3]) || null }
}

/**
 * After a reboot, and in a container, the pid of a dead server may be somebody else's by now, and
 * PostgreSQL would refuse to start. The file also names the shared memory that tells a new server whether
 * children of the old one still live, so it is not removed: the pid is replaced by ours, which a
 * PostgreSQL started by us knows to be harmless.
 */
export const disownStalePid = (cluster: string): void => {
  const lines = linesOf(fileOf(cluster))
  if (lines.length === 0 || postmasterOf(cluster) !== null) return
  writeFileSync(fileOf(cluster), [String(process.pid), ...lines.slice(1)].join("\n"))
}

const linesOf = (file: string): ReadonlyArray<string> => textOf(() => readFileSync(file, "utf8"))?.split("\n") ?? []

const isPostgres = (pid: number): boolean => {
  // A process that has ended but was not yet reaped has an empty command line.
  const program =
    process.platform === "linux"
      ? textOf(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.split("\0")[0]
      : textOf(() => execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8", stdio: "pipe" }))
  return program?.trim().endsWith("postgres") ?? false
}

const textOf = (read: () => string): string | null => Result.getOrNull(Result.try(read))
