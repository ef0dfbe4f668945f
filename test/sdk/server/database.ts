/** A database of the product for a test of the library, and what was sent and published in it. */
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll } from "vitest"
import { freshDatabase } from "../../servers/freshDatabase.ts"

export interface TestDatabase {
  readonly url: string
  readonly pool: pg.Pool
  readonly count: (table: string, where?: string) => Promise<number>
}

/** A fresh, migrated database for the tests of a file. */
export const testDatabase = (prepare = ""): (() => TestDatabase) => {
  const scope = Scope.makeUnsafe()
  let database: TestDatabase | undefined
  beforeAll(async () => {
    const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
    const pool = new pg.Pool({ connectionString: url })
    // Their connections end with the database.
    pool.on("error", () => {})
    const count = async (table: string, where = "true") => {
      const { rows } = await pool.query(`select count(*)::int as n from ${table} where ${where}`)
      return rows[0].n as number
    }
    await pool.query(prepare || "select 1")
    database = { url, pool, count }
  })
  afterAll(async () => {
    await database?.pool.end()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  return () => database!
}

export interface Commanded {
  readonly id: string
  readonly kind: string
  readonly org: string
  readonly body: Record<string, unknown>
  readonly key: string | null
}

/** What transactions have committed to Posthaste, all of it or with a correlationId. */
export const commanded = async (pool: pg.Pool, correlationId?: string): Promise<ReadonlyArray<Commanded>> => {
  const text = `select id, case type when 'SendMessage' then 'message' else 'event' end as kind, org_id as org, request::json as body, key
    from posthaste.sql_command where $1::text is null or request::json ->> 'correlationId' = $1`
  return (await pool.query<Commanded>(text, [correlationId])).rows
}
