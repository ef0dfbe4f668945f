/** The whole product in a process of its own, as `npm start` runs it. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { owned } from "./leftovers.ts"

export interface Posthaste {
  readonly process: ChildProcess
  readonly url: string
  /** Everything it printed up to now. */
  readonly printed: () => string
  readonly exitCode: Promise<number | null>
}

const main = join(import.meta.dirname, "../../src/main.ts")
/** Compiled code is kept from one process to the next, as the command `posthaste` does: a third less work per start. */
export const compileCache = { NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/posthaste") }

/** Runs a program, such as `src/main.ts`, to its end. */
export const runToEnd = async (env: Record<string, string>, program = main, args: ReadonlyArray<string> = []) => {
  const child = launch(env, program, args)
  return { exitCode: await child.exitCode, printed: child.printed() }
}

/** Runs any program to its end, with no more of an environment than is given. */
export const runProgramToEnd = async (file: string, args: ReadonlyArray<string>, env: Record<string, string>) => {
  const child = spawn(file, args, { env: { ...owned, ...env }, stdio: ["ignore", "pipe", "pipe"] })
  let [out, err] = ["", ""]
  child.stdout.on("data", (chunk) => (out += String(chunk)))
  child.stderr.on("data", (chunk) => (err += String(chunk)))
  const [code] = (await once(child, "close")) as [number | null]
  return { code, out, err }
}

/** Answers when it says that it is ready. */
export const startPosthaste = async (env: Record<string, string>): Promise<Posthaste> => {
  const child = launch(env, main)
  let hasEnded = false
  const gone = child.exitCode.then((code) => {
    hasEnded = true
    throw new Error(`Posthaste ended with ${code}:\n${child.printed()}`)
  })
  const ready = async () => {
    while (!hasEnded && !child.printed().includes("  Posthaste  "))
      await new Promise((resolve) => setTimeout(resolve, 20))
    return /Posthaste {2}(https?:\S+)/.exec(child.printed())?.[1] ?? ""
  }
  return { ...child, url: await Promise.race([ready(), gone]) }
}

/** A test that fails, or runs out of time, may leave some behind: they end with its file. */
const running = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

const launch = (env: Record<string, string>, program: string, args: ReadonlyArray<string> = []) => {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env["PATH"], PORT: "0", ...compileCache, ...owned, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.add(child)
  child.once("close", () => running.delete(child))
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)))
  const exitCode: Promise<number | null> = once(child, "close").then(([code]) => code)
  // Whoever asks is told; nobody has to ask.
  exitCode.catch(() => {})
  return { process: child, printed: () => text, exitCode }
}

export const stop = async ({ process: child, exitCode }: Posthaste): Promise<number | null> => {
  child.kill("SIGTERM")
  return await exitCode
}
