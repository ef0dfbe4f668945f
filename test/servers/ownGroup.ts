/**
 * Ctrl-C reaches every process of a terminal's group at once. A script that decides itself in which order what it started ends
 * runs once more, in a group of its own, and hears of Ctrl-C through the process that stays with the terminal.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"

const MARK = "POSTHASTE_IN_OWN_GROUP"

/** Answers in the process of the new group; the other one ends when that has ended, with its exit code. */
export const inOwnGroup = async (): Promise<void> => {
  if (process.env[MARK] !== undefined) return
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    detached: true,
    env: { ...process.env, [MARK]: "1" },
    stdio: "inherit"
  })
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void child.kill(signal))
  const [code] = (await once(child, "exit")) as [number | null]
  process.exit(code ?? 130)
}
