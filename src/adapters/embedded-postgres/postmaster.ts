/** Reads `postmaster.pid` and checks whether its server runs. */
import { execFileSync } from "node:child_process"
import { readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"

interface Postmaster {
  readonly pid: number
  readonly port: number | null
}

const fileOf = (cluster: string) => join(cluster, "postmaster.pid")

/** Null without a running server, whatever file a dead one left. */
export const postmasterOf = (cluster: string): Postmaster | null => {
  const lines = linesOf(fileOf(cluster))
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0 || !isPostgres(pid)) return null
  // The pid may belong to another server by then.
  if (directoryOf(pid, cluster) !== real(cluster)) return null
  return { pid, port: Number(lines[3]) || null }
}

/**
 * Directory that `postmaster.pid` names, when it is another: a copy of data under a running server may be torn. Once
 * that server has stopped, a copy looks like data moved after a crash.
 */
export const formerPlaceOf = (cluster: string): { readonly directory: string; readonly isInUse: boolean } | null => {
  const [pid, directory] = linesOf(fileOf(cluster))
  if (!directory || real(directory) === real(cluster)) return null
  return { directory, isInUse: isPostgres(Number(pid)) && directoryOf(Number(pid), cluster) === real(directory) }
}

/**
 * Replaces the pid of a dead server by this process's: another process may have it after a reboot, and PostgreSQL would
 * refuse to start. The file stays, as it names the shared memory that shows surviving children.
 */
export const disownStalePid = (cluster: string): void => {
  const lines = linesOf(fileOf(cluster))
  if (lines.length === 0 || postmasterOf(cluster) !== null) return
  writeFileSync(fileOf(cluster), [String(process.pid), ...lines.slice(1)].join("\n"))
}

/** Directory of the server with this pid; `otherwise` where the command line does not tell. */
const directoryOf = (pid: number, otherwise: string): string => {
  const args =
    process.platform === "linux"
      ? textOf(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.split("\0")
      : textOf(() =>
          execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8", stdio: "pipe" })
        )?.split(" ")
  const flag = args?.indexOf("-D") ?? -1
  return real(flag < 0 ? otherwise : args![flag + 1]!)
}

const real = (path: string): string => textOf(() => realpathSync(path)) ?? path

const linesOf = (file: string): ReadonlyArray<string> => textOf(() => readFileSync(file, "utf8"))?.split("\n") ?? []

const isPostgres = (pid: number): boolean => {
  // Unreaped processes have an empty command line.
  const program =
    process.platform === "linux"
      ? textOf(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.split("\0")[0]
      : textOf(() => execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8", stdio: "pipe" }))
  return program?.trim().endsWith("postgres") ?? false
}

const textOf = (read: () => string): string | null => Result.getOrNull(Result.try(read))
