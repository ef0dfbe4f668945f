/**
 * One event to a thousand endpoints, published by processes that are killed at any moment: everybody gets it, or nobody,
 * and everybody gets the same bytes. And the price of finding seven among ten thousand.
 */
import { createHash } from "node:crypto"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, operatorKey, product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { pause, until } from "../servers/until.ts"

const ENDPOINTS = 1_000
const KILLS = 6

interface Published {
  readonly id: string
  readonly matched: number
}

const connected = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

/** Endpoints as the API makes them, but all in one statement. */
const endpointsLike = (count: number) => `
  insert into posthaste.destination (id, org_id, channel, version, settings, secrets, created_at, updated_at)
    select gen_random_uuid(), org_id, channel, version, settings || $2::jsonb, secrets, created_at, updated_at
    from posthaste.destination cross join generate_series(1, ${count}) where id = $1`

describe("an event for a thousand endpoints", () => {
  it.live(
    "is stored for all of them or for none, whenever its process is killed, and reaches all with the same bytes",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const far = yield* receiver(() => ({ status: 200 }))
        const client = yield* connected(database)
        const count = async (sql: string) => Number((await client.query(sql)).rows[0].count)
        const roles = { POSTHASTE_ROLES: "api" }

        yield* Effect.promise(async () => {
          const first = await startProduct(database, roles)
          const call = api(first.url!, "acme")
          const settings = { url: far.url, eventTypes: ["order.*"], retry: { strategy: "fixed", baseMs: 100 } }
          const create = async () => {
            for (let n = 0; n < ENDPOINTS / 10; n++) await call("POST", "/webhook-endpoints", settings)
          }
          await Promise.all(Array.from({ length: 10 }, create))
          await call("POST", "/events", { eventType: "warm.up", data: 1 })
          await first.kill()
        })

        // Each kill at another moment of the request; the first one waits for the answer, and tells how long that takes.
        let takes = Number.POSITIVE_INFINITY
        const answered: Array<string> = []
        for (let nth = 0; nth < KILLS; nth++) {
          yield* Effect.promise(async () => {
            const process = await startProduct(database, roles)
            // What comes first in a new process takes longest.
            const call = api(process.url!, "acme")
            await call("POST", "/events", { eventType: "warm.up", data: 1 })
            const publishing = fetch(`${process.url}/api/v1/events`, {
              method: "POST",
              headers: {
                ...{ authorization: `Bearer ${operatorKey}`, "x-org-id": "acme", "content-type": "application/json" },
                "idempotency-key": `event ${nth}`
              },
              body: `{"eventType":"order.paid","data":{"n":${nth},"big":12345678901234567890, "price":1.10}}`
            }).then(
              async (response) => answered.push(((await response.json()) as Published).id),
              () => {}
            )
            const begun = performance.now()
            if (nth === 0) await publishing
            else await pause((takes * nth) / (KILLS - 1))
            if (nth === 0) takes = performance.now() - begun
            await process.kill()
            await publishing
            // Whatever was stored is whole.
            expect(
              await count(`select count(*) from posthaste.publication p where event_type = 'order.paid' and ${ENDPOINTS} <> (
                select count(*) from posthaste.fan_out f join posthaste.event e on e.stream_id = f.message_id
                  join posthaste.ready r on r.message_id = f.message_id join posthaste.message b on b.id = f.message_id
                where f.event_id = p.id and e.version = 1)`)
            ).toBe(0)
          })
        }

        const worker = yield* product(database, { ...roles, POSTHASTE_ROLES: "api,worker" })
        yield* Effect.promise(async () => {
          const stored = await count("select count(*) from posthaste.publication where event_type = 'order.paid'")
          console.log(`killed ${KILLS} times: ${stored} events stored, ${answered.length} answered`)
          // An answer was never taken back, and a repeat publishes what is missing, once.
          const ids: Array<string> = []
          for (let nth = 0; nth < KILLS; nth++) {
            const response = await fetch(`${worker.url}/api/v1/events`, {
              method: "POST",
              headers: {
                ...{ authorization: `Bearer ${operatorKey}`, "x-org-id": "acme", "content-type": "application/json" },
                "idempotency-key": `event ${nth}`
              },
              body: `{"eventType":"order.paid","data":{"n":${nth},"big":12345678901234567890, "price":1.10}}`
            })
            const { id, matched } = (await response.json()) as Published
            expect([200, 201]).toContain(response.status)
            expect(matched).toBe(ENDPOINTS)
            ids.push(id)
          }
          expect(new Set(ids).size).toBe(KILLS)
          for (const id of answered) expect(ids).toContain(id)

          const wanted = KILLS * ENDPOINTS
          await until("every endpoint to be called", () => new Set(far.received.map(({ id }) => id)).size >= wanted)
          expect(new Set(far.received.map(({ id }) => id)).size).toBe(wanted)
          // Kills were of processes without workers: nothing is sent twice.
          expect(far.received.length).toBe(wanted)
          const bodies = new Set(far.received.map(({ body }) => createHash("sha256").update(body).digest("hex")))
          expect(bodies.size).toBe(KILLS)
          expect(far.received.every(({ body }) => body.endsWith('"big":12345678901234567890, "price":1.10}}'))).toBe(
            true
          )
          expect(await count("select count(*) from posthaste.shared_body")).toBe(KILLS + KILLS + 1)
          expect(await count("select count(*) from posthaste.message where body is not null")).toBe(0)
        })
      }),
    600_000
  )
})

describe("ten thousand endpoints of which seven want an event", () => {
  it.live(
    "are found by the index of their wishes, and no other is read",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const client = yield* connected(database)
        const call = api((yield* product(database, { POSTHASTE_ROLES: "api" })).url!, "acme")
        yield* Effect.promise(async () => {
          const { id } = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: "https://shop.example" }))
            .body
          await client.query(endpointsLike(9_993), [id, '{"eventTypes": ["invoice.paid", "invoice.sent"]}'])
          await client.query(endpointsLike(7), [id, '{"eventTypes": ["order.*"]}'])
          await call("DELETE", `/webhook-endpoints/${id}`)
          const publish = () => call<Published>("POST", "/events", { eventType: "order.paid", data: { n: 1 } })
          expect(await publish()).toMatchObject({ status: 201, body: { matched: 7 } })

          // Rows that the seven cost, without statistics and with them.
          for (const refresh of ["select 1", "analyze posthaste.subscription, posthaste.destination"]) {
            await client.query(refresh)
            const read = await reads(
              client,
              "select * from posthaste.matching_destinations('acme', array['order.paid', 'order.*', '*'])"
            )
            expect(read.rows).toBe(7)
            expect(read.scans).toEqual([])
            expect(read.tuples).toBeLessThan(40)
          }

          const times: Array<number> = []
          for (let n = 0; n < 30; n++) {
            const begun = performance.now()
            expect((await publish()).body.matched).toBe(7)
            times.push(performance.now() - begun)
          }
          times.sort((a, b) => a - b)
          console.log(
            `7 of 10,000 endpoints: median ${times[15]!.toFixed(1)} ms, slowest ${times.at(-1)!.toFixed(1)} ms`
          )
        })
      }),
    600_000
  )
})

/** What one call reads: the rows it answers, the tables it scans, the rows it fetches from tables and indexes. */
const reads = async (client: pg.Client, call: string) => {
  const seen = async () => {
    await client.query("select pg_stat_force_next_flush()")
    const { rows } = await client.query<{ relname: string; seq_scan: string; fetched: string }>(
      `select relname, seq_scan, (seq_tup_read + coalesce(idx_tup_fetch, 0))::text as fetched
         from pg_stat_xact_user_tables where schemaname = 'posthaste'`
    )
    return new Map(
      rows.map(({ relname, ...row }) => [relname, { scans: Number(row.seq_scan), tuples: Number(row.fetched) }])
    )
  }
  await client.query("begin")
  try {
    const before = await seen()
    const { rowCount } = await client.query(call)
    const after = await seen()
    const changes = [...after].map(([name, { scans, tuples }]) => ({
      name,
      scans: scans - (before.get(name)?.scans ?? 0),
      tuples: tuples - (before.get(name)?.tuples ?? 0)
    }))
    return {
      rows: rowCount,
      scans: changes.filter(({ scans }) => scans > 0).map(({ name }) => name),
      tuples: changes.reduce((sum, { tuples }) => sum + tuples, 0)
    }
  } finally {
    await client.query("rollback")
  }
}
