/** Reads `postmaster.pid`, and checks whether the server that it names still runs. */
import { execFileSync } from "node:child_process"
import { readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"

export interface Postmaster {
  readonly pid: number
  /** Null until the server has written where it listens. */
  readonly port: number | null
}

const fileOf = (cluster: string) => join(cluster, "postmaster.pid")

/** Null when no server runs on `cluster`, also where a dead server left its file. */
export const postmasterOf = (cluster: string): Postmaster | null => {
  const lines = linesOf(fileOf(cluster))
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0 || !isPostgres(pid)) return null
  // The pid of a server that died may belong to any other server by now.
  if (directoryOf(pid, cluster) !== real(cluster)) return null
  return { pid, port: Number(lines[3]) || null }
}

/**
 * Where the server last ran that left its `postmaster.pid` in `cluster`, when that was another directory. What was copied under a running
 * server may be torn, so it is no data to start on while that server still runs. Later nobody can tell such a copy from data that
 * were moved after a crash.
 */
export const formerPlaceOf = (cluster: string): { readonly directory: string; readonly isInUse: boolean } | null => {
  const [pid, directory] = linesOf(fileOf(cluster))
  if (!directory || real(directory) === real(cluster)) return null
  return { directory, isInUse: isPostgres(Number(pid)) && directoryOf(Number(pid), cluster) === real(directory) }
}

/**
 * After a reboot, and in a container, another process may have the pid of a dead server, and PostgreSQL would refuse to start.
 * The file also names the shared memory by which a new server knows whether children of the old one still live, so it is not
 * removed: the pid is replaced by ours, which a PostgreSQL that we start knows to be harmless.
 */
export const disownStalePid = (cluster: string): void => {
  const lines = linesOf(fileOf(cluster))
  if (lines.length === 0 || postmasterOf(cluster) !== null) return
  writeFileSync(fileOf(cluster), [String(process.pid), ...lines.slice(1)].join("\n"))
}

/** The directory that the server with this pid works on; `otherwise` where its command line does not tell. */
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
  // A process that has ended but was not yet reaped has an empty command line.
  const program =
    process.platform === "linux"
      ? textOf(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.split("\0")[0]
      : textOf(() => execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8", stdio: "pipe" }))
  return program?.trim().endsWith("postgres") ?? false
}

const textOf = (read: () => string): string | null => Result.getOrNull(Result.try(read))
