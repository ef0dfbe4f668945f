/**
 * Starts a PostgreSQL for each of Vitest's workers, once one asks, and stops them all after the last test. Workers are
 * other processes: they ask over HTTP. `TEST_DATABASE_URL` names a server for all workers instead (its user must be
 * allowed to create databases).
 */
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import type { TestProject } from "vitest/node"
import { start } from "../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { migrate } from "../../src/adapters/postgres/migrate.ts"
import { administer, inDatabase } from "./administer.ts"
import { ownDirectory, removeLeftovers } from "./leftovers.ts"
import type { Postgres } from "./postgres.ts"

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

export default async (project: TestProject) => {
  removeLeftovers()
  const scope = Scope.makeUnsafe()
  const startOne = Effect.gen(function* () {
    const url = process.env["TEST_DATABASE_URL"] || (yield* ownServer)
    return { url, template: yield* template(url) }
  })
  const started = new Map<string, Promise<Postgres>>()
  const answers = createServer(({ url = "" }, response) => {
    const server = started.get(url) ?? Effect.runPromise(Scope.provide(startOne, scope))
    started.set(url, server)
    server.then(
      (found) => response.end(JSON.stringify(found)),
      (error) => response.writeHead(500).end(String(error))
    )
  })
  await new Promise<void>((resolve) => answers.listen(0, "127.0.0.1", resolve))
  project.provide("postgresServers", `http://127.0.0.1:${(answers.address() as AddressInfo).port}`)
  return async () => {
    answers.close()
    await Promise.allSettled(started.values())
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
