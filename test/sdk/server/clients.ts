/** One PostgreSQL database, reached through each of the libraries that users have. */
import { PrismaPg } from "@prisma/adapter-pg"
import * as prismaRuntime from "@prisma/client/runtime/client"
import { drizzle as drizzleOverPg } from "drizzle-orm/node-postgres"
import { drizzle as drizzleOverPostgresJs } from "drizzle-orm/postgres-js"
import knex from "knex"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import postgres from "postgres"
import type { DatabaseClient } from "../../../sdk/src/outbox.ts"

export interface Library {
  readonly name: string
  readonly open: (url: string) => Promise<Opened>
}

export interface Opened {
  /** The pool, or the database: what an application has in hand. */
  readonly root: DatabaseClient
  /** A transaction as the library's users open it. */
  readonly transaction: <A>(work: (transaction: DatabaseClient) => Promise<A>) => Promise<A>
  readonly close: () => Promise<unknown>
}

/**
 * A Prisma client without models: they are all that `prisma generate` would add, and that tool is downloaded from elsewhere
 * than npm.
 */
const prismaClient = (url: string): Prisma => {
  const runtime = "@prisma/client/runtime/query_compiler_fast_bg.postgresql"
  const { getPrismaClient } = prismaRuntime as unknown as {
    getPrismaClient: (config: object) => new (options: object) => Prisma
  }
  const PrismaClient = getPrismaClient({
    previewFeatures: [],
    clientVersion: "7",
    engineVersion: "none",
    activeProvider: "postgresql",
    inlineSchema: `generator client {\n  provider = "prisma-client"\n}\ndatasource db {\n  provider = "postgresql"\n}\n`,
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: Buffer.alloc(16).toString("base64url") },
    compilerWasm: {
      getRuntime: () => import(`${runtime}.mjs`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = await import(`${runtime}.wasm-base64.mjs`)
        // A global that the types of Node leave to browsers.
        const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (bytes: Uint8Array) => unknown } }
        return new WebAssembly.Module(Buffer.from(wasm, "base64"))
      },
      importName: "./query_compiler_fast_bg.js"
    }
  })
  return new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
}

/** What a generated client has, of the part that is used here. */
interface PrismaTransaction {
  $queryRawUnsafe<T = unknown>(query: string, ...values: ReadonlyArray<unknown>): Promise<T>
  $executeRawUnsafe(query: string, ...values: ReadonlyArray<unknown>): Promise<number>
}
interface Prisma extends PrismaTransaction {
  $transaction<A>(work: (transaction: PrismaTransaction) => Promise<A>, options?: { timeout?: number }): Promise<A>
  $disconnect(): Promise<void>
}

const pgPool = (url: string) => new pg.Pool({ connectionString: url, max: 4 })

export const libraries: ReadonlyArray<Library> = [
  {
    name: "pg (pool)",
    open: async (url) => {
      const pool = pgPool(url)
      const transaction = async <A>(work: (client: DatabaseClient) => Promise<A>) => {
        const client = await pool.connect()
        try {
          await client.query("begin")
          const answer = await work(client)
          await client.query("commit")
          return answer
        } catch (error) {
          await client.query("rollback")
          throw error
        } finally {
          client.release()
        }
      }
      return { root: pool, transaction, close: () => pool.end() }
    }
  },
  {
    name: "pg (client)",
    open: async (url) => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const transaction = async <A>(work: (client: DatabaseClient) => Promise<A>) => {
        await client.query("begin")
        try {
          const answer = await work(client)
          await client.query("commit")
          return answer
        } catch (error) {
          await client.query("rollback")
          throw error
        }
      }
      return { root: client, transaction, close: () => client.end() }
    }
  },
  {
    name: "postgres.js",
    open: async (url) => {
      const sql = postgres(url, { max: 4, onnotice: () => {} })
      return { root: sql, transaction: (work) => sql.begin(work) as never, close: () => sql.end() }
    }
  },
  {
    name: "Prisma",
    open: async (url) => {
      const prisma = prismaClient(url)
      return { root: prisma, transaction: (work) => prisma.$transaction(work), close: () => prisma.$disconnect() }
    }
  },
  {
    name: "Drizzle over pg",
    open: async (url) => {
      const pool = pgPool(url)
      const db = drizzleOverPg(pool)
      return { root: db, transaction: (work) => db.transaction(work), close: () => pool.end() }
    }
  },
  {
    name: "Drizzle over postgres.js",
    open: async (url) => {
      const sql = postgres(url, { max: 4, onnotice: () => {} })
      const db = drizzleOverPostgresJs(sql)
      return { root: db, transaction: (work) => db.transaction(work), close: () => sql.end() }
    }
  },
  {
    name: "Kysely",
    open: async (url) => {
      const db = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool: pgPool(url) }) })
      return { root: db, transaction: (work) => db.transaction().execute(work), close: () => db.destroy() }
    }
  },
  {
    name: "Knex",
    open: async (url) => {
      const db = knex({ client: "pg", connection: url, pool: { min: 0, max: 4 } })
      return { root: db, transaction: (work) => db.transaction(work), close: () => db.destroy() }
    }
  }
]
