/** A server that falls silent, goes away or only reads: connections are made anew, to another host where there is one. */
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, Scope } from "effect"
import type pg from "pg"
import { describe, expect } from "vitest"
import * as Postgres from "../../../src/adapters/postgres/Postgres.ts"
import { connectionsOf, unlessSilent } from "../../../src/adapters/postgres/Postgres.ts"
import { serverAt } from "../../../src/adapters/postgres/pool.ts"
import { SCHEMA_DEFAULT } from "../../../src/adapters/postgres/schemaName.ts"
import { administer } from "../../servers/administer.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import { proxyTo } from "../../servers/proxy.ts"
import { PATIENCE_MS } from "../../servers/until.ts"

const DEADLINE_MS = 500

const one = { text: "select 1 as one" }
const session = { text: "select pg_backend_pid() as pid" }
const answer = [{ one: 1 }]

const logged = () => {
  const lines: Array<string> = []
  const layer = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  return { lines, layer }
}

const connect = (url: string, answersWithinMs = DEADLINE_MS, log = logged()) =>
  Effect.map(Layer.build(Postgres.layer({ url: Redacted.make(url), answersWithinMs })), (context) => ({
    ...Effect.runSync(Effect.provide(Postgres.Postgres, context)),
    log: log.lines
  })).pipe(Effect.provide(log.layer))

const through = (url: string, ports: ReadonlyArray<number>) => {
  const { username, password, pathname } = new URL(url)
  const user = username === "" ? "" : `${username}${password === "" ? "" : `:${password}`}@`
  return `postgres://${user}${ports.map((port) => `127.0.0.1:${port}`).join(",")}${pathname}?target_session_attrs=read-write`
}

const proxiedWith = (answersWithinMs: number) =>
  Effect.gen(function* () {
    const url = Redacted.value(yield* freshDatabase)
    const { hostname, port } = new URL(url)
    const proxy = yield* proxyTo({ host: hostname, port: Number(port) })
    return { url, proxy, postgres: yield* connect(through(url, [proxy.port]), answersWithinMs) }
  })
const proxied = proxiedWith(DEADLINE_MS)

/** Without the pools of the product. */
const proxiedServer = Effect.gen(function* () {
  const url = Redacted.value(yield* freshDatabase)
  const { hostname, port } = new URL(url)
  const proxy = yield* proxyTo({ host: hostname, port: Number(port) })
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => serverAt(through(url, [proxy.port]), SCHEMA_DEFAULT, () => {})),
    ({ close }) => Effect.promise(close)
  )
  return { url, proxy, server }
})

/** Greets like a server that only reads, and knows nothing else. */
const standby = Effect.acquireRelease(
  Effect.promise(async () => {
    const message = (type: string, body: Buffer) => {
      const length = Buffer.alloc(4)
      length.writeInt32BE(body.length + 4)
      return Buffer.concat([Buffer.from(type), length, body])
    }
    let asked = 0
    const server = createServer((socket) => {
      asked += 1
      socket.on("error", () => {})
      socket.once("data", () =>
        socket.write(
          Buffer.concat([
            message("R", Buffer.alloc(4)),
            message("S", Buffer.from("in_hot_standby\0on\0")),
            message("Z", Buffer.from("I"))
          ])
        )
      )
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return { port: (server.address() as AddressInfo).port, asked: () => asked, close: () => server.close() }
  }),
  ({ close }) => Effect.sync(close)
)

const DEAD_PORT = 1

describe("a connection that fell silent", () => {
  it.live("fails what can't be repeated after its deadline, and nothing after it: every pool connects anew", () =>
    Effect.gen(function* () {
      const { proxy, postgres } = yield* proxied
      const { durable, queue, lookups, reads, derived, log } = postgres
      const all = [durable, queue, lookups, reads, derived]
      for (const pool of all) expect(yield* pool.query(one, [])).toEqual(answer)
      const before = proxy.made()
      proxy.fallSilent(false)
      const failed = yield* Effect.flip(durable.query(one, []))
      expect(String(failed.cause)).toContain("did not answer within 1.5 s")
      expect(failed.code).toBeNull()
      // Had one of them met its silent connection, it would have failed too: these can't be asked again.
      for (const pool of [durable, queue, derived]) expect(yield* pool.query(one, [])).toEqual(answer)
      for (const pool of [lookups, reads]) expect(yield* pool.query(one, [])).toEqual(answer)
      expect(proxy.made() - before).toBe(all.length)
      expect(log).toEqual(["the database did not answer within 1.5 s: all connections to it are made anew"])
    })
  )

  it.live("is asked once more, on a new one, for what only reads", () =>
    Effect.gen(function* () {
      const { proxy, postgres } = yield* proxied
      expect(yield* postgres.lookups.query(one, [])).toEqual(answer)
      proxy.fallSilent(false)
      expect(yield* postgres.lookups.query(one, [])).toEqual(answer)
    })
  )

  it.live("takes along what waits on the others", () =>
    Effect.gen(function* () {
      const { proxy, postgres } = yield* proxied
      const { durable, bulk } = postgres
      yield* durable.query(one, [])
      yield* bulk.query(one, [])
      proxy.fallSilent(false)
      // The first one's deadline is over a second before the other's would be.
      const asked = yield* Effect.all([Effect.flip(durable.query(one, [])), Effect.flip(bulk.query(one, []))], {
        concurrency: 2
      })
      expect(new Set(asked.map(({ cause }) => (cause as Error).message)).size).toBe(1)
    })
  )

  it.live("fails what was asked on another a moment before, however long that may take", () =>
    Effect.gen(function* () {
      const { proxy, server } = yield* proxiedServer
      const [short, long] = [DEADLINE_MS, 3_600_000].map((answersWithinMs) =>
        connectionsOf(server.pool({ connections: 1, answersWithinMs }))
      )
      for (const pool of [short!, long!]) yield* pool.query(one, [])
      proxy.fallSilent(false)
      const first = yield* Effect.forkChild(Effect.flip(short!.query(one, [])))
      yield* Effect.sleep(DEADLINE_MS + 500)
      const failed = yield* Effect.flip(long!.query(one, []))
      expect(String(failed.cause)).toContain("did not answer within 1.5 s")
      yield* Fiber.join(first)
    })
  )

  it.live("is not thought of when we stood still ourselves while the answer came", () =>
    Effect.gen(function* () {
      // Without the proxy, which would stand still too.
      const postgres = yield* connect(Redacted.value(yield* freshDatabase))
      yield* postgres.durable.query(one, [])
      const keepTheLoop = Effect.sync(() =>
        // Once it is asked. What comes next in a turn of the loop are its timers, and then what has arrived.
        setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DEADLINE_MS + 1_500))
      )
      const [rows] = yield* Effect.all([postgres.durable.query(one, []), keepTheLoop], { concurrency: 2 })
      expect(rows).toEqual(answer)
      expect(postgres.log).toEqual([])
    })
  )

  it.live("fails work without a deadline too, such as a migration, and no work of a server that answers", () =>
    Effect.gen(function* () {
      const { proxy, server } = yield* proxiedServer
      const connected = yield* Deferred.make<void>()
      const seen = {
        connect: async (settings: pg.ClientConfig) => {
          const client = await server.connect(settings)
          Deferred.doneUnsafe(connected, Effect.void)
          return client
        }
      }
      const pool = server.pool({ connections: 1, answersWithinMs: null }).pg
      const slow = Effect.tryPromise(() => pool.query("select 1 as one from pg_sleep(0.3)"))
      const often = { everyMs: 20, withinMs: PATIENCE_MS }
      expect((yield* unlessSilent(server, slow, often)).rows).toEqual(answer)

      const endless = Effect.tryPromise(() => pool.query("select pg_sleep(3600)"))
      const begun = yield* Effect.forkChild(Effect.flip(unlessSilent(seen, endless, { everyMs: 20, withinMs: 500 })))
      yield* Deferred.await(connected)
      proxy.fallSilent(false)
      expect(String((yield* Fiber.join(begun)).cause)).toContain("timeout")
    })
  )

  it.live("does not hold up the end", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const { hostname, port } = new URL(url)
      const proxy = yield* proxyTo({ host: hostname, port: Number(port) })
      const scope = yield* Scope.make()
      const { durable, bulk } = yield* Scope.provide(connect(through(url, [proxy.port])), scope)
      yield* durable.query(one, [])
      yield* bulk.query(one, [])
      proxy.fallSilent(true)
      yield* Effect.forkChild(Effect.ignore(bulk.query(one, [])))
      yield* Effect.sleep("50 millis")
      yield* Scope.close(scope, Exit.void)
    })
  )

  it.live("is told apart from a statement that takes long: that one ends, and no connection with it", () =>
    Effect.gen(function* () {
      const { postgres } = yield* proxied
      const [before] = yield* postgres.durable.query<{ pid: number }>(session, [])
      yield* postgres.queue.query(one, [])
      const failed = yield* Effect.flip(postgres.durable.query({ text: "select pg_sleep(5)" }, []))
      expect(failed.code).toBe("57014")
      expect(postgres.log).toEqual([])
      expect(before).toBeDefined()
    })
  )
})

describe("a server that says it goes away", () => {
  it.live("is connected to anew, by all", () =>
    Effect.gen(function* () {
      const { url, proxy, postgres } = yield* proxiedWith(PATIENCE_MS)
      const { durable, queue } = postgres
      const [mine] = yield* durable.query<{ pid: number }>(session, [])
      yield* queue.query(one, [])
      const made = proxy.made()
      const [failed] = yield* Effect.all(
        [
          Effect.flip(durable.query({ text: "select pg_sleep(100)" }, [])),
          Effect.promise(() => administer(url, `select pg_terminate_backend(${mine!.pid}) from pg_sleep(0.1)`))
        ],
        { concurrency: 2 }
      )
      expect(failed.code).toBe("57P01")
      for (const pool of [durable, queue]) expect(yield* pool.query(one, [])).toEqual(answer)
      expect(proxy.made() - made).toBe(2)
    })
  )

  it.live("only reads from now on: no connection to it is used again", () =>
    Effect.gen(function* () {
      const { proxy, postgres } = yield* proxied
      const { durable, queue } = postgres
      for (const pool of [durable, queue]) yield* pool.query(one, [])
      const made = proxy.made()
      const demoted =
        "do $$ begin raise exception sqlstate '25006' using message = 'cannot execute in a read-only transaction'; end $$"
      expect((yield* Effect.flip(durable.query({ text: demoted }, []))).code).toBe("25006")
      for (const pool of [durable, queue]) expect(yield* pool.query(one, [])).toEqual(answer)
      expect(proxy.made() - made).toBe(2)
    })
  )
})

describe("several hosts", () => {
  it.live("are tried until one may be written to, which then is the first to be tried", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const reader = yield* standby
      const postgres = yield* connect(through(url, [DEAD_PORT, reader.port, Number(new URL(url).port)]))
      for (const pool of [postgres.durable, postgres.queue, postgres.reads])
        expect(yield* pool.query(one, [])).toEqual(answer)
      expect(reader.asked()).toBe(1)
    })
  )

  it.live("are tried from the next one on when the one that was used fell silent", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const { hostname, port } = new URL(url)
      const frozen = yield* proxyTo({ host: hostname, port: Number(port) })
      const promoted = yield* proxyTo({ host: hostname, port: Number(port) })
      const { durable, queue } = yield* connect(through(url, [frozen.port, promoted.port]))
      for (const pool of [durable, queue]) yield* pool.query(one, [])
      const made = frozen.made()
      // Whoever connects to it waits in vain, for seconds.
      frozen.fallSilent(true)
      yield* Effect.flip(durable.query(one, []))
      for (const pool of [durable, queue]) expect(yield* pool.query(one, [])).toEqual(answer)
      expect([frozen.made() - made, promoted.made()]).toEqual([0, 2])
    })
  )

  it.live("that all only read are no database", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const reader = yield* standby
      const failed = yield* Effect.flip(connect(through(url, [reader.port, DEAD_PORT, reader.port])))
      expect(String(failed.cause)).toContain("may only be read")
    })
  )
})

describe("a statement that the server rolled back", () => {
  const failingOnce = (code: string) =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      yield* Effect.promise(() =>
        administer(
          url,
          [
            "create sequence public.asked",
            `create function public.rolled_back() returns bigint language plpgsql as $$ begin
          if nextval('public.asked') < 3 then raise 'another came first' using errcode = '${code}'; end if;
          return currval('public.asked');
        end $$`
          ].join(";")
        )
      )
      const postgres = yield* connect(url)
      return yield* postgres.durable
        .query({ text: "select public.rolled_back()::int as nth" }, [])
        .pipe(Effect.map((rows) => ({ rows, log: postgres.log })))
    })

  it.live.each(["40P01", "40001"])("by %s is asked again, and the log says so", (code) =>
    Effect.gen(function* () {
      const { rows, log } = yield* failingOnce(code)
      expect(rows).toEqual([{ nth: 3 }])
      expect(log.filter((line) => line.includes("asked again"))).toHaveLength(2)
    })
  )
})
