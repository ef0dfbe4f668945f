/**
 * PostgreSQL for all tests that need one, with a migrated template to copy databases from. Test files that run at the
 * same time have a server each: a transaction that is open anywhere on a server holds back every log on it.
 */
import { inject } from "vitest"

/** Where databases are made, and what they are copied from. */
export interface Postgres {
  readonly url: string
  readonly template: string
}

declare module "vitest" {
  export interface ProvidedContext {
    /** Where each worker is told of its server (test/servers/postgresServers.ts). */
    readonly postgresServers: string
  }
}

/** The server of this worker, which starts when it is asked for first. */
export const postgres = async (): Promise<Postgres> => {
  const response = await fetch(`${inject("postgresServers")}/${process.env["VITEST_POOL_ID"]}`)
  if (!response.ok) throw new Error(`No PostgreSQL for tests: ${await response.text()}`)
  return (await response.json()) as Postgres
}
