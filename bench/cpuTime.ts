/**
 * CPU time used, which says more than a rate when others are at work on the machine. Read from /proc, so only Linux
 * knows; elsewhere the answer is null and the report leaves the figure out.
 */
import { readdirSync, readFileSync } from "node:fs"

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

interface Process {
  readonly name: string
  readonly parent: number
  readonly seconds: number
  /** Used by children that have ended. */
  readonly childrenSeconds: number
}

const read = (pid: number | string): Process | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const end = stat.lastIndexOf(")")
    const field = stat.slice(end + 2).split(" ")
    const ticks = (first: number) => (Number(field[first]) + Number(field[first + 1])) / ticksPerSecond
    return {
      name: stat.slice(stat.indexOf("(") + 1, end),
      parent: Number(field[1]),
      seconds: ticks(11),
      childrenSeconds: ticks(13)
    }
  } catch {
    return null
  }
}

export const cpuSeconds = (pid: number): number | null => read(pid)?.seconds ?? null

/** Of a whole PostgreSQL server, found by one of its backends; null when that runs on another machine. */
export const serverCpuSeconds = (backend: number): number | null => {
  const process = read(backend)
  const postmaster = process === null ? null : read(process.parent)
  if (process?.name !== "postgres" || postmaster?.name !== "postgres") return null
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(read)
    .filter((other) => other?.parent === process.parent)
    .reduce((sum, other) => sum + other!.seconds, postmaster.seconds + postmaster.childrenSeconds)
}
