/** The product on a database that is given, as its users run it in production, spoken to over HTTP as the operator. */
import type { ChildProcess } from "node:child_process"
import { Effect } from "effect"
import { startPosthaste } from "./posthaste.ts"

export const operatorKey = "ph_operator_for_tests_only_0123456789"

export interface Product {
  /** Null when it does not play the role `api`. */
  readonly url: string | null
  readonly process: ChildProcess
  /** Everything it printed up to now. */
  readonly printed: () => string
  /** Ends it as an operator would, and waits. */
  readonly stop: () => Promise<number | null>
  /** Ends it as the kernel would, and waits. */
  readonly kill: () => Promise<void>
}

export const startProduct = async (databaseUrl: string, settings: Record<string, string>): Promise<Product> => {
  const started = await startPosthaste({
    DATABASE_URL: databaseUrl,
    POSTHASTE_OPERATOR_KEY: operatorKey,
    POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64"),
    POSTHASTE_ALLOWED_NETWORKS: "127.0.0.0/8",
    ...settings
  })
  const end = (signal: NodeJS.Signals) => {
    started.process.kill(signal)
    return started.exitCode
  }
  return {
    url: started.url === "" ? null : started.url,
    process: started.process,
    printed: started.printed,
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
