/** The product as its users run it: `node src/main.ts` in a process of its own, spoken to over HTTP. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Effect } from "effect"

const main = join(import.meta.dirname, "../../src/main.ts")
const READY_WITHIN_MS = 30_000

export const operatorKey = "ph_operator_for_tests_only_0123456789"

export interface Product {
  /** Null when it does not play the role `api`. */
  readonly url: string | null
  readonly process: ChildProcess
  /** Ends it as an operator would, and waits. */
  readonly stop: () => Promise<number | null>
  /** Ends it as the kernel would, and waits. */
  readonly kill: () => Promise<void>
}

export const startProduct = async (databaseUrl: string, settings: Record<string, string>): Promise<Product> => {
  const child = spawn(process.execPath, [main], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: databaseUrl,
      PORT: "0",
      POSTHASTE_OPERATOR_KEY: operatorKey,
      POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64"),
      POSTHASTE_ALLOWED_NETWORKS: "127.0.0.0/8",
      ...settings
    }
  })
  const exited = once(child, "exit")
  let output = ""
  const ready = new Promise<string | null>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready in time:\n${output}`)), READY_WITHIN_MS)
    const hear = (chunk: Buffer) => {
      output += chunk
      const line = /Posthaste {2}(\S+)/.exec(output)
      if (line === null) return
      clearTimeout(timer)
      resolve(line[1]!.startsWith("http") ? line[1]! : null)
    }
    child.stdout.on("data", hear)
    child.stderr.on("data", hear)
    exited.then(() => {
      clearTimeout(timer)
      reject(new Error(`ended before it was ready:\n${output}`))
    }, reject)
  })
  const url = await ready
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    const [code] = await exited
    return code as number | null
  }
  return {
    url,
    process: child,
    stop: () => end("SIGTERM"),
    kill: async () => {
      await end("SIGKILL")
    }
  }
}

/** Runs the product for as long as the scope is open. */
export const product = (databaseUrl: string, settings: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.promise(() => startProduct(databaseUrl, settings)),
    ({ process: child, kill }) => Effect.promise(async () => (child.exitCode === null ? kill() : undefined))
  )

/** Calls the API as the operator, for `org`. */
export const api =
  (url: string, org: string) =>
  async <A = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown
  ): Promise<{ status: number; body: A }> => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${operatorKey}`, "x-org-id": org, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    return { status: response.status, body: (text === "" ? null : JSON.parse(text)) as A }
  }
