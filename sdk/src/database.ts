/**
 * The user's own PostgreSQL client, whichever library it is of: pg, postgres.js, Prisma, Drizzle, Kysely or Knex. Each library
 * has one function here, which says how it runs a statement and how it opens a transaction. Nothing of a library is imported:
 * a client is known by its methods.
 *
 * Statements bind texts and null only, as `$1::text`, and answer texts, so that no library's own conversion can differ.
 */

/** A client of pg, postgres.js, Prisma, Drizzle, Kysely or Knex: the pool, the database, or an open transaction. */
export type DatabaseClient =
  | { query(text: string, values?: ReadonlyArray<unknown>): unknown }
  | { unsafe(text: string, values?: Array<never>): unknown }
  | { $queryRawUnsafe(text: string, ...values: ReadonlyArray<unknown>): unknown }
  | { execute(text: string): unknown }
  | { executeQuery(query: never): unknown }
  | { raw(text: string, values: never): unknown }

/** What `work` is given: the transaction of the client's own library. */
export type TransactionOf<Client> = Client extends {
  $transaction(work: (transaction: infer Transaction) => Promise<unknown>, ...rest: ReadonlyArray<never>): unknown
}
  ? Transaction
  : Client extends { begin(options: string, work: (transaction: infer Transaction) => unknown): unknown }
    ? Transaction
    : Client extends { transaction(): { execute(work: (transaction: infer Transaction) => Promise<unknown>): unknown } }
      ? Transaction
      : Client extends {
            transaction(
              work: (transaction: infer Transaction) => Promise<unknown>,
              ...rest: ReadonlyArray<never>
            ): unknown
          }
        ? Transaction
        : Client extends {
              connect(done: (error: never, client: infer Connected, release: never) => void): void
              readonly totalCount: number
            }
          ? NonNullable<Connected>
          : Client

export type Row = Readonly<Record<string, string | null>>
export type Value = string | null

/** A client as the rest of this library sees it. */
export interface Database {
  readonly run: (text: string, values?: ReadonlyArray<Value>) => Promise<ReadonlyArray<Row>>
  /**
   * Runs `work` in a transaction: one of its own, or, when the client is in one already, behind a savepoint of that. What
   * `work` did is undone when it fails.
   */
  readonly atomically: <A>(work: (transaction: Database) => Promise<A>) => Promise<A>
  /** The library's own object, which the user's functions are given. */
  readonly client: unknown
}

/** A client by its methods; what they take and answer is the library's. */
// biome-ignore lint/suspicious/noExplicitAny: the libraries' types are not ours, and none of them is imported
type Any = any

export const databaseOf = (client: unknown): Database => {
  const one = client as Any
  if (one !== null && (typeof one === "object" || typeof one === "function")) {
    for (const [method, adapter] of adapters) if (typeof one[method] === "function") return adapter(one)
  }
  throw new TypeError("This is no client of pg, postgres.js, Prisma, Drizzle, Kysely or Knex.")
}

type Run = Database["run"]

/** The library opens transactions, and savepoints in them, by itself. */
const withOwn = (
  client: Any,
  run: Run,
  open: (work: (transaction: unknown) => Promise<unknown>) => Promise<unknown>
): Database => ({
  client,
  run,
  atomically: <A>(work: (transaction: Database) => Promise<A>) => open((own) => work(databaseOf(own))) as Promise<A>
})

const rowsOf = (answer: Any): ReadonlyArray<Row> => (Array.isArray(answer) ? answer : answer.rows)

const postgresJs = (client: Any): Database => {
  const run: Run = async (text, values = []) => rowsOf(await client.unsafe(text, values))
  if (client.begin) return withOwn(client, run, (work) => client.begin(work))
  if (client.savepoint) return withOwn(client, run, (work) => client.savepoint(work))
  return onOneConnection(client, run)
}

const prisma = (client: Any): Database => {
  const run: Run = async (text, values = []) => {
    if (/^\s*(select|insert|update|delete|with)\b/i.test(text)) return client.$queryRawUnsafe(text, ...values)
    await client.$executeRawUnsafe(text, ...values)
    return []
  }
  return client.$transaction ? withOwn(client, run, (work) => client.$transaction(work)) : onOneConnection(client, run)
}

const kysely = (client: Any): Database => {
  const run: Run = async (text, values = []) => {
    const query = { kind: "RawNode", sqlFragments: [text], parameters: [] }
    return rowsOf(
      await client.executeQuery({ sql: text, parameters: values, query, queryId: { queryId: "posthaste" } })
    )
  }
  return client.isTransaction
    ? onOneConnection(client, run)
    : withOwn(client, run, (work) => client.transaction().execute(work))
}

/** Takes a whole statement as a text, so the values stand in it. */
const drizzle = (client: Any): Database => {
  const run: Run = async (text, values = []) =>
    rowsOf(
      await client.execute(values.length === 0 ? text : text.replace(/\$(\d+)/g, (_, n) => literal(values[n - 1]!)))
    )
  return withOwn(client, run, (work) => client.transaction(work))
}

/** A text as a constant of SQL, whatever `standard_conforming_strings` is. */
const literal = (value: Value): string =>
  value === null ? "null" : ` E'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`

const knex = (client: Any): Database => {
  const run: Run = async (text, values = []) => {
    const inOrder: Array<Value> = []
    const marked = text.replace(/\$(\d+)/g, (_, n) => {
      inOrder.push(values[n - 1]!)
      return "?"
    })
    return rowsOf(await client.raw(marked, inOrder))
  }
  return withOwn(client, run, (work) => client.transaction(work))
}

const pg = (client: Any): Database => {
  const run: Run = async (text, values) => rowsOf(await client.query(text, values))
  const isPool = typeof client.connect === "function" && typeof client.totalCount === "number"
  if (!isPool) return onOneConnection(client, run)
  return withOwn(client, run, async (work) => {
    const connection = await client.connect()
    let broken: unknown
    try {
      return await transaction(
        pg(connection),
        () => work(connection),
        (cause) => (broken = cause)
      )
    } finally {
      // A connection whose transaction could not be ended must not go back to the pool.
      connection.release(broken !== undefined)
    }
  })
}

/** By a method that no other of these libraries has; pg's is the most common, so it comes last. */
const adapters: ReadonlyArray<readonly [method: string, adapter: (client: Any) => Database]> = [
  ["unsafe", postgresJs],
  ["$queryRawUnsafe", prisma],
  ["executeQuery", kysely],
  ["execute", drizzle],
  ["raw", knex],
  ["query", pg]
]

/** A single connection, on which transactions and savepoints are ordinary statements. */
const onOneConnection = (client: Any, run: Run): Database => {
  const database: Database = {
    client,
    run,
    atomically: async (work) => {
      // pg knows whether a transaction is open; of any other client, only PostgreSQL does.
      const status = client.getTransactionStatus?.()
      if (status === "I") return transaction(database, () => work(database))
      try {
        await run("savepoint posthaste")
      } catch (error) {
        if (sqlStateOf(error) !== NO_TRANSACTION) throw error
        return transaction(database, () => work(database))
      }
      try {
        const answer = await work(database)
        await run("release savepoint posthaste")
        return answer
      } catch (error) {
        await run("rollback to savepoint posthaste")
        await run("release savepoint posthaste")
        throw error
      }
    }
  }
  return database
}

const transaction = async <A>(
  { run }: Database,
  work: () => Promise<A>,
  onBroken: (cause: unknown) => void = () => {}
): Promise<A> => {
  try {
    await run("begin")
    const answer = await work()
    await run("commit")
    return answer
  } catch (error) {
    await run("rollback").catch(onBroken)
    throw error
  }
}

const NO_TRANSACTION = "25P01"
const NO_TABLE = "42P01"

/** The SQLSTATE of an error, wherever the library puts it. */
const sqlStateOf = (error: unknown): string | undefined => {
  for (let one = error as Any, depth = 0; one && depth < 5; one = one.cause, depth++) {
    const state = one.meta?.driverAdapterError?.cause?.originalCode ?? one.meta?.code ?? one.originalCode ?? one.code
    if (typeof state === "string" && /^[0-9A-Z]{5}$/.test(state)) return state
  }
  return undefined
}

/** One of our own statements met no table. A statement of the user's that does so is the user's. */
class MissingTable extends Error {}

const noticing = (database: Database): Database => ({
  client: database.client,
  run: async (text, values) => {
    try {
      return await database.run(text, values)
    } catch (error) {
      if (sqlStateOf(error) !== NO_TABLE) throw error
      throw new MissingTable("A table is missing.", { cause: error })
    }
  },
  atomically: (work) => database.atomically((transaction) => work(noticing(transaction)))
})

/** Runs `work` in a transaction. When a table is missing, makes the tables and runs it again. */
export const atomicallyWith = async <A>(
  client: unknown,
  tables: string,
  work: (transaction: Database) => Promise<A>
): Promise<A> => {
  const database = databaseOf(client)
  try {
    return await noticing(database).atomically(work)
  } catch (error) {
    if (!(error instanceof MissingTable)) throw error
    await createTables(database, tables)
    return await database.atomically(work)
  }
}

/** Two processes that make the same table at once would get in each other's way: one waits for the other. */
export const createTables = async (database: Database, tables: string): Promise<void> => {
  await database.run(`do $do$ begin perform pg_advisory_xact_lock(7267010143598); ${tables} end $do$`)
}

/** A name, perhaps with its schema, as SQL writes it. */
export const quoted = (name: string): string => {
  const parts = name.split(".")
  if (parts.some((part) => part === "" || part.includes("\0")))
    throw new TypeError(`${name} is no name of a table or schema.`)
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(".")
}
