/**
 * Connections to one server, which may be one of several hosts and may fall silent.
 *
 * - A statement has a deadline in the server (`statement_timeout`) and, a second later, one here. Missing the second means a silent
 *   connection, as some failovers leave it: then all connections of all pools are made anew, and statements on old ones fail within a
 *   second. So it is when the server goes away, or turns read-only.
 * - A connection goes to the host that worked last, and to the next one where that is silent, unreachable or read-only.
 * - Keepalives find a dead end also for a statement without a deadline.
 */
import { Result } from "effect"
import pg from "pg"
import { urlsOf } from "./hosts.ts"
import { sessionPlanning } from "./planning.ts"
import { searchPathOf } from "./schemaName.ts"

const CONNECTED_WITHIN_MS = 5_000
/** Then one every second; the tenth without an answer ends the connection. */
const KEEPALIVE_AFTER_MS = 5_000
/** For the server's own word of its deadline to arrive. */
const SPARE_MS = 1_000
/** When a connection was found silent, statements that waited this long on others fail too. */
const ALSO_SILENT_MS = 1_000
const CLOSED_WITHIN_MS = 2_000

/** A server that only reads, or is going away. */
const GOING = new Set(["25006", "57P01", "57P02", "57P03"])
const ONLY_READS = "25006"

/** The statement changed nothing and is asked again: a deadlock, or a serialization failure. */
const ROLLED_BACK = new Set(["40P01", "40001"])
const ASKED_AT_MOST = 5

export interface Kind {
  readonly connections: number
  /** Null: no deadline. */
  readonly answersWithinMs: number | null
  /** Commits answer before they reach the disk. */
  readonly asynchronous?: boolean
  /** A statement whose connection broke is asked once more. */
  readonly onlyReads?: boolean
}

export type Answered<Rows> = (error: unknown, rows: Rows) => void

export interface Pool {
  readonly pg: pg.Pool
  readonly ask: <Rows>(query: pg.QueryConfig, answered: Answered<Rows>) => void
}

export interface Server {
  readonly pool: (kind: Kind) => Pool
  /** A connection outside the pools. */
  readonly connect: (settings: pg.ClientConfig) => Promise<pg.Client>
  readonly close: () => Promise<void>
}

/** A statement under way. */
interface Asked {
  readonly age: number
  readonly since: number
  readonly giveUp: (error: Error) => void
}

type Connected = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (broken?: Error | boolean) => void
) => void

/** `say` tells the operator, in one line, that all connections are made anew, and why. */
export const serverAt = (url: string, schema: string, say: (line: string) => void): Server => {
  const urls = Result.getOrThrowWith(urlsOf(url), (problem) => new Error(`DATABASE_URL ${problem}`))
  let host = 0
  let age = 0
  const asked = new Set<Asked>()
  const clients = new Set<pg.Client>()
  const pools: Array<pg.Pool> = []

  /** Old idle connections are dropped when a statement is given one. */
  const renew = (why: string) => {
    age += 1
    say(`${why}: all connections to it are made anew`)
    const renewed = age
    const giveUpWhoWaited = (ms: number) => {
      const askedBy = performance.now() - ms
      for (const { age: theirs, since, giveUp } of asked)
        if (theirs < renewed && since <= askedBy) giveUp(new Error(why))
    }
    giveUpWhoWaited(ALSO_SILENT_MS)
    // Later statements on old connections may have deadlines minutes away.
    setTimeout(() => setImmediate(giveUpWhoWaited, 0), ALSO_SILENT_MS).unref()
  }

  const moveOnFrom = (tried: number) => {
    if (host === tried) host = (host + 1) % urls.length
  }

  class Client extends pg.Client {
    readonly age = age
    readonly said = new Map<string, string>()

    constructor(config?: pg.ClientConfig) {
      super({
        ...config,
        connectionString: urls[host]!,
        connectionTimeoutMillis: CONNECTED_WITHIN_MS,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS
      })
      clients.add(this)
      this.once("end", () => clients.delete(this))
      this.connection.on("parameterStatus", ({ parameterName, parameterValue }) =>
        this.said.set(parameterName, parameterValue)
      )
    }
  }

  /** PostgreSQL 14 and later greet with these. */
  const objectionTo = ({ said }: Client): Error | undefined =>
    said.get("in_hot_standby") === "on" || said.get("default_transaction_read_only") === "on"
      ? Object.assign(new Error("the database may only be read"), { code: ONLY_READS })
      : undefined

  class HostsPool extends pg.Pool {
    override connect(): Promise<pg.PoolClient>
    override connect(connected: Connected): void
    override connect(connected?: Connected): Promise<pg.PoolClient> | undefined {
      if (connected === undefined)
        return new Promise((resolve, reject) =>
          this.connect((error, client) => (client === undefined ? reject(error) : resolve(client)))
        )
      const attempt = (hostsLeft: number): void => {
        const tried = host
        super.connect((error, client, release) => {
          if (client === undefined) {
            // A busy pool says nothing about the host.
            if (isBusy(error)) return connected(error, undefined, release)
            moveOnFrom(tried)
            if (hostsLeft > 1) attempt(hostsLeft - 1)
            else connected(error, undefined, release)
          } else if ((client as unknown as Client).age < age) {
            client.connection.stream.destroy()
            release(true)
            attempt(hostsLeft)
          } else connected(undefined, client, release)
        })
      }
      attempt(urls.length)
      return undefined
    }
  }

  const pool = ({ connections: max, answersWithinMs, asynchronous = false, onlyReads = false }: Kind): Pool => {
    const settings = {
      idle_in_transaction_session_timeout: "30s",
      TimeZone: "UTC",
      search_path: searchPathOf(schema),
      statement_timeout: String(answersWithinMs ?? 0),
      // Also `on`: the setting of a role or server may be `off`.
      synchronous_commit: asynchronous ? "off" : "on",
      ...sessionPlanning
    }
    const open = new HostsPool({
      Client,
      verify: (client, done) => done(objectionTo(client as unknown as Client)),
      max,
      idleTimeoutMillis: 60_000,
      connectionTimeoutMillis: CONNECTED_WITHIN_MS,
      application_name: "posthaste",
      options: Object.entries(settings)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(" ")
    })
    // Without a listener an idle connection that breaks would end the process.
    open.on("error", () => {})
    pools.push(open)

    const ask = <Rows>(query: pg.QueryConfig, answered: Answered<Rows>, again = onlyReads, nth = 1): void =>
      open.connect((unreachable, client, release) => {
        if (client === undefined) return answered(unreachable, [] as Rows)
        const mine = (client as unknown as Client).age
        const settle = (failure: Error | null, result?: pg.QueryResult) => {
          if (!asked.delete(statement)) return
          clearTimeout(timer)
          client.off("error", settle)
          release(failure ?? undefined)
          if (failure === null) return answered(null, result!.rows as Rows)
          const code = sqlState(failure)
          const isGoing = code !== null && GOING.has(code)
          if (isGoing && mine === age) {
            if (code === ONLY_READS) moveOnFrom(host)
            renew(`the database says: ${failure.message}`)
          }
          if (code !== null && ROLLED_BACK.has(code) && nth < ASKED_AT_MOST) {
            say(`the database rolled a statement back (${failure.message}): it is asked again`)
            ask(query, answered, again, nth + 1)
          } else if (again && (code === null || isGoing)) ask(query, answered, false, nth)
          else answered(failure, [] as Rows)
        }
        // By `setImmediate`, so that an answer that arrived while the process stood still is read first.
        const giveUp = (withinMs: number) => {
          if (!asked.has(statement)) return
          const silence = `the database did not answer within ${(withinMs + SPARE_MS) / 1000} s`
          if (mine === age) {
            // A frozen host would hold up each new connection.
            moveOnFrom(host)
            renew(silence)
          }
          settle(new Error(silence))
        }
        const statement: Asked = { age: mine, since: performance.now(), giveUp: settle }
        const timer =
          answersWithinMs === null
            ? undefined
            : setTimeout(() => setImmediate(giveUp, answersWithinMs), answersWithinMs + SPARE_MS)
        asked.add(statement)
        client.once("error", settle)
        client.query(query, settle as (error: Error, result: pg.QueryResult) => void)
      })

    return { pg: open, ask: (query, answered) => ask(query, answered) }
  }

  const close = async () => {
    const ended = Promise.all(pools.map((open) => open.end()))
    const timer = setTimeout(() => {
      for (const { connection } of clients) connection.stream.destroy()
    }, CLOSED_WITHIN_MS)
    await ended
    clearTimeout(timer)
  }

  const connect = async (settings: pg.ClientConfig) => {
    const tried = host
    const client = new Client(settings)
    // Callers listen for the end.
    client.on("error", () => {})
    try {
      await client.connect()
      const objection = objectionTo(client)
      if (objection !== undefined) throw objection
      return client
    } catch (error) {
      client.connection.stream.destroy()
      moveOnFrom(tried)
      throw error
    }
  }

  return { pool, connect, close }
}

const isBusy = (error: Error | undefined) => error?.message === "timeout exceeded when trying to connect"

/** Null for errors that are not the server's. */
export const sqlState = (error: unknown): string | null =>
  typeof error === "object" && error !== null && "code" in error && /^[0-9FHPX][0-9A-Z]{4}$/.test(String(error.code))
    ? String(error.code)
    : null
