/**
 * Commands that a user's own transactions give, to the whole product. The sizes are small; POSTHASTE_TEST_SCALE multiplies
 * them.
 */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { pgBouncer } from "../servers/pgBouncer.ts"
import { api, product } from "../servers/product.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const SCALE = Number(process.env["POSTHASTE_TEST_SCALE"] ?? 1)
const WITHIN_MS = PATIENCE_MS * SCALE

const setUp = Effect.fnUntraced(function* (settings: Record<string, string> = {}) {
  const database = Redacted.value(yield* freshDatabase)
  const server = yield* product(database, { POSTHASTE_ROLES: "api,relay,projector", ...settings })
  const call = api(server.url!, "acme")
  const endpoint = yield* Effect.promise(
    async () => (await call("POST", "/webhook-endpoints", { url: "http://127.0.0.1:9/" })).body["id"] as string
  )
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new pg.Pool({ connectionString: database, max: 20 })),
    (pool) => Effect.promise(() => pool.end())
  )
  const rows = async <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
    (await pool.query<Row & pg.QueryResultRow>(text, [...values])).rows
  const send = async (
    message: object | string,
    key: string | null = null,
    org = "acme",
    client: pg.Pool | pg.ClientBase = pool
  ) => {
    const json = typeof message === "string" ? message : JSON.stringify(message)
    const { rows } = await client.query<{ id: string }>("select posthaste.send($1, $2, $3) as id", [org, json, key])
    return rows[0]!.id
  }
  const outcome = async (id: string) =>
    (
      await rows<{ outcome: { status: string; id?: string; problem?: { status: number; errors: unknown } } }>(
        "select posthaste.outcome($1) as outcome",
        [id]
      )
    )[0]!.outcome
  const settled = async (id: string) => {
    let found = await outcome(id)
    await until(
      `${id} is settled`,
      async () => {
        found = await outcome(id)
        return found !== null && found.status !== "PENDING"
      },
      WITHIN_MS
    )
    return found
  }
  const message = (more: object = {}) => ({
    channel: "webhook",
    to: endpoint,
    eventType: "a.b",
    payloadJson: 1,
    ...more
  })
  return { database, server, call, endpoint, pool, rows, send, outcome, settled, message }
})

describe("posthaste.send", () => {
  it.live("is accepted if and only if its transaction commits, under the id it answered at once", () =>
    Effect.gen(function* () {
      const { call, pool, rows, send, outcome, settled, message } = yield* setUp()
      yield* Effect.promise(async () => {
        const client = await pool.connect()
        await client.query("begin")
        const kept = await send(message(), null, "acme", client)
        await client.query("savepoint half")
        const undone = await send(message(), null, "acme", client)
        await client.query("rollback to savepoint half")
        expect(await outcome(kept)).toBeNull()
        await client.query("commit")
        await client.query("begin")
        const rolledBack = await send(message(), null, "acme", client)
        await client.query("rollback")
        client.release()

        expect(await settled(kept)).toEqual({ status: "ACCEPTED" })
        expect((await call("GET", `/outbound/messages/${kept}`)).body).toMatchObject({ id: kept, status: "QUEUED" })
        for (const id of [undone, rolledBack]) {
          expect(await outcome(id)).toBeNull()
          expect((await call("GET", `/outbound/messages/${id}`)).status).toBe(404)
        }
        expect(kept).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(await rows("select * from posthaste.sql_command")).toEqual([])
      })
    })
  )

  it.live("delivers the digits that were written, and is decided like a request over HTTP", () =>
    Effect.gen(function* () {
      const { rows, send, settled, message, endpoint } = yield* setUp()
      yield* Effect.promise(async () => {
        const id = await send(
          `{"channel":"webhook","to":"${endpoint}","eventType":"a","payloadJson":{"d":1.10,"n":12345678901234567890}}`
        )
        expect(await settled(id)).toEqual({ status: "ACCEPTED" })
        const [body] = await rows<{ body: string }>("select body from posthaste.message where id = $1", [id])
        expect(body!.body).toBe('{"d":1.10,"n":12345678901234567890}')

        const cases: ReadonlyArray<readonly [object, number, string]> = [
          [message({ to: randomUUID() }), 400, "to"],
          [message({ orderingkey: "x" }), 400, "orderingkey"],
          [message({ channel: "pigeon" }), 400, "channel"]
        ]
        for (const [request, status, field] of cases) {
          const refused = await settled(await send(request))
          expect(refused).toMatchObject({ status: "REFUSED", problem: { status, errors: [{ field }] } })
        }
        expect(await settled(await send(message(), null, "no org"))).toMatchObject({
          status: "REFUSED",
          problem: { errors: [{ field: "org" }] }
        })
        const facts = await rows<{ name: string }>("select name from posthaste.event where stream like 'command-%'")
        expect(facts).toHaveLength(cases.length)
        await expect(send("null")).resolves.toBeDefined()
        await expect(rows("select posthaste.send('acme', null)")).rejects.toThrow("message must not be null")
      })
    })
  )

  it.live("is accepted once for each key, over SQL and HTTP alike", () =>
    Effect.gen(function* () {
      const { call, pool, send, settled, message } = yield* setUp()
      yield* Effect.promise(async () => {
        const first = await send(message(), "k-1")
        expect(await settled(first)).toEqual({ status: "ACCEPTED" })
        expect(await send(message(), "k-1")).toBe(first)
        // Neither transaction sees the other.
        const clients = await Promise.all([pool.connect(), pool.connect()])
        for (const client of clients) await client.query("begin")
        const ids = []
        for (const client of clients) ids.push(await send(message(), "k-2", "acme", client))
        for (const client of clients) await client.query("commit")
        for (const client of clients) client.release()
        const outcomes = [await settled(ids[0]!), await settled(ids[1]!)]
        expect(outcomes).toContainEqual({ status: "ACCEPTED" })
        const alias = outcomes.find(({ id }) => id !== undefined)!
        expect(ids).toContain(alias.id)
        // Another message under a key that is taken: the first stays, and the second is refused.
        const count = async () =>
          (await call<{ items: ReadonlyArray<unknown> }>("GET", "/outbound/messages")).body.items.length
        await until("both are listed", async () => (await count()) === 2, WITHIN_MS)
        await send(message({ payloadJson: 2 }), "k-1")
        await until(
          "it is refused",
          async () => {
            const { rows } = await pool.query("select problem from posthaste.refused_command where key = 'k-1'")
            return rows[0]?.problem.status === 409
          },
          WITHIN_MS
        )
        expect(await count()).toBe(2)
      })
    })
  )

  it.live(
    "waits for no other caller, however long that one's transaction stays open, and keeps the order of each",
    () =>
      Effect.gen(function* () {
        const { database, rows, send, message } = yield* setUp()
        const open = yield* Effect.acquireRelease(
          Effect.sync(() => new pg.Client({ connectionString: database })),
          (client) => Effect.promise(() => client.end())
        )
        yield* Effect.promise(async () => {
          await open.connect()
          await open.query("begin")
          await send(message({ correlationId: "open" }), null, "acme", open)
          const count = 200 * SCALE
          const kept: Array<string> = []
          await Promise.all(
            Array.from({ length: 4 }, async (_, w) => {
              const client = new pg.Client({ connectionString: database })
              await client.connect()
              for (let n = 0; n < count; n++) {
                await client.query("begin")
                const id = `${w}-${String(n).padStart(6, "0")}`
                await client.query("select posthaste.send('acme', $1)", [
                  JSON.stringify(message({ correlationId: id }))
                ])
                const isKept = n % 5 !== 0
                await client.query(isKept ? "commit" : "rollback")
                if (isKept) kept.push(id)
              }
              await client.end()
            })
          )
          const accepted = async () =>
            (
              await rows<{ id: string }>(
                "select m.correlation_id as id from posthaste.event e join posthaste.message m on m.id = e.stream_id where e.version = 1 order by e.tx, e.position"
              )
            ).map(({ id }) => id)
          await until(
            "all that was committed is accepted",
            async () => (await accepted()).length >= kept.length,
            WITHIN_MS
          )
          const found = await accepted()
          expect(found.toSorted()).toEqual(kept.toSorted())
          for (let w = 0; w < 4; w++) {
            const ofOne = found.filter((id) => id.startsWith(`${w}-`))
            expect(ofOne).toEqual(ofOne.toSorted())
          }
          await open.query("commit")
          await until("the last one too", async () => (await accepted()).includes("open"), WITHIN_MS)
        })
      })
  )

  it.live("works through PgBouncer in transaction mode", () =>
    Effect.gen(function* () {
      const { database, settled, message } = yield* setUp()
      const url = yield* pgBouncer(database, 2)
      yield* Effect.promise(async () => {
        const ids = await Promise.all(
          Array.from({ length: 12 }, async (_, n) => {
            const client = new pg.Client({ connectionString: url })
            await client.connect()
            await client.query("begin")
            const { rows } = await client.query("select posthaste.send('acme', $1, $2) as id", [
              JSON.stringify(message()),
              `k-${n}`
            ])
            await client.query(n % 3 === 0 ? "rollback" : "commit")
            await client.end()
            return n % 3 === 0 ? null : (rows[0].id as string)
          })
        )
        for (const id of ids) if (id !== null) expect(await settled(id)).toEqual({ status: "ACCEPTED" })
      })
    })
  )

  it.live("has a twin for events, which are published if and only if their transaction commits", () =>
    Effect.gen(function* () {
      const { call, rows, settled } = yield* setUp()
      yield* Effect.promise(async () => {
        const publish = async (event: object, key: string | null = null) =>
          (
            await rows<{ id: string }>("select posthaste.publish('acme', $1, $2) as id", [JSON.stringify(event), key])
          )[0]!.id
        const id = await publish({ eventType: "order.paid", data: { n: 1 } }, "e-1")
        expect(await settled(id)).toEqual({ status: "ACCEPTED" })
        expect((await call("GET", `/events/${id}`)).body).toMatchObject({ id, eventType: "order.paid", matched: 1 })
        expect(await publish({ eventType: "order.paid", data: { n: 1 } }, "e-1")).toBe(id)
        expect(await settled(await publish({ eventType: "order.*", data: 1 }))).toMatchObject({
          status: "REFUSED",
          problem: { errors: [{ field: "eventType" }] }
        })
      })
    })
  )

  it.live("may be called by the role posthaste_sender, which may do nothing else", () =>
    Effect.gen(function* () {
      const { database, rows, settled, message } = yield* setUp()
      yield* Effect.promise(async () => {
        const user = `sender_${randomUUID().replaceAll("-", "")}`
        await rows(`create role ${user} login password 'x' in role posthaste_sender`)
        const url = new URL(database)
        url.username = user
        url.password = "x"
        const client = new pg.Client({ connectionString: url.href })
        await client.connect()
        try {
          const { rows: sent } = await client.query("select posthaste.send('acme', $1, 'k') as id", [
            JSON.stringify(message())
          ])
          expect(await settled(sent[0].id)).toEqual({ status: "ACCEPTED" })
          expect((await client.query("select posthaste.outcome($1)", [sent[0].id])).rows[0].outcome).toEqual({
            status: "ACCEPTED"
          })
          for (const forbidden of [
            "select * from posthaste.event",
            "select * from posthaste.sql_command",
            "insert into posthaste.sql_command (id, org_id, type, request) values (gen_random_uuid(), 'a', 'b', '{}')",
            "select posthaste.take_commands(gen_random_uuid(), 1, null, 1)",
            "select posthaste.log_end()",
            "create table posthaste.mine (n int)"
          ]) {
            await expect(client.query(forbidden), forbidden).rejects.toThrow("permission denied")
          }
        } finally {
          await client.end()
          await rows(`drop role ${user}`)
        }
      })
    })
  )
})
