/**
 * One PostgreSQL for all test files that need one, with a migrated template to copy databases from.
 * `TEST_DATABASE_URL` names a server to use instead (its user must be allowed to create databases).
 */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import type { TestProject } from "vitest/node"
import { start } from "../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { migrate } from "../../src/adapters/postgres/migrate.ts"
import { ownDirectory, removeLeftovers } from "./leftovers.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** Where databases are made, and what they are copied from. */
    readonly postgres: { readonly url: string; readonly template: string }
  }
}

/** Nothing in a test outlives the machine, so nothing has to reach the disk. */
const settings = {
  fsync: "off",
  synchronous_commit: "on",
  full_page_writes: "off",
  max_connections: "300",
  autovacuum_naptime: "1min"
}

const ownServer = Effect.gen(function* () {
  const home = yield* ownDirectory
  const { url } = yield* start({ directory: join(home, "data"), settings })
  return Redacted.value(url)
})

const template = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const name = `posthaste_template_${randomUUID().replaceAll("-", "")}`
      await administer(url, `create database ${name}`)
      const pool = new pg.Pool({ connectionString: inDatabase(url, name), max: 1 })
      await Effect.runPromise(migrate(pool))
      await pool.end()
      return name
    }),
    (name) => Effect.promise(() => administer(url, `drop database ${name} with (force)`))
  )

export const inDatabase = (url: string, database: string): string => {
  const other = new URL(url)
  other.pathname = `/${database}`
  return other.href
}

export const administer = async (url: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}

export default async (project: TestProject) => {
  removeLeftovers()
  const scope = Scope.makeUnsafe()
  const given = process.env["TEST_DATABASE_URL"]
  const url = given ? given : await Effect.runPromise(Scope.provide(ownServer, scope))
  project.provide("postgres", { url, template: await Effect.runPromise(Scope.provide(template(url), scope)) })
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
