/** The command `posthaste` in a process of its own, as its users run it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { owned } from "./leftovers.ts"

const program = join(import.meta.dirname, "../../bin/posthaste")

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Standard output as the JSON it is. */
  readonly json: <A>() => A
}

export const launch = (env: Readonly<Record<string, string>>, args: ReadonlyArray<string>) =>
  spawn(program, args, { env: { PATH: process.env["PATH"], ...owned, ...env }, stdio: "pipe" })

/** Runs it to its end. */
export const posthaste =
  (env: Readonly<Record<string, string>>) =>
  async (args: ReadonlyArray<string>, input = ""): Promise<Ran> => {
    const child = launch(env, args)
    let [out, err] = ["", ""]
    child.stdout.on("data", (chunk) => (out += String(chunk)))
    child.stderr.on("data", (chunk) => (err += String(chunk)))
    child.stdin.end(input)
    const [code] = (await once(child, "close")) as [number | null]
    return { code, out, err, json: <A>() => JSON.parse(out) as A }
  }
