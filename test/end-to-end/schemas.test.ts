/** Two Posthastes in one database, in a schema each: both deliver, and neither sees, wakes or waits for the other. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

const MESSAGES = 50
const schemas = ["first_one", "second_one"] as const

describe("two schemas in one database", () => {
  it.live("hold a Posthaste each", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const database = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: url })
          // The database is dropped under connections that are still on their way out.
          client.on("error", () => {})
          await client.connect()
          // What the template left: a table of ours that is found without its schema would be found here.
          await client.query("drop schema posthaste cascade")
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      // All advisory locks of the first are held; the second must not meet them.
      const far = yield* receiver(() => ({ status: 200 }))
      const sides = yield* Effect.forEach(schemas, (schema) =>
        Effect.map(product(url, { POSTHASTE_SCHEMA: schema }), (started) => ({
          schema,
          call: api(started.url!, "acme")
        }))
      )
      yield* Effect.promise(async () => {
        await database.query("begin")
        await database.query(`select pg_advisory_xact_lock(${schemas[0]}.lock_key(n)) from generate_series(0, 255) n`)
        const accepted = async (side: (typeof sides)[number]) => {
          const to = (
            await side.call<{ id: string }>("POST", "/webhook-endpoints", { url: `${far.url}/${side.schema}` })
          ).body.id
          const messages = Array.from({ length: MESSAGES }, (_, n) => ({
            channel: "webhook",
            to,
            orderingKey: `key ${n % 5}`,
            idempotencyKey: `same ${n}`,
            payloadJson: { schema: side.schema }
          }))
          const { body } = await side.call<{ items: ReadonlyArray<{ status: number; message: { id: string } }> }>(
            "POST",
            "/outbound/messages/batch",
            { messages }
          )
          expect(body.items.map(({ status }) => status)).toEqual(messages.map(() => 201))
          return body.items.map(({ message }) => message.id)
        }
        const second = await accepted(sides[1]!)
        await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(MESSAGES)
        await database.query("commit")
        const first = await accepted(sides[0]!)
        await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(2 * MESSAGES)

        const toFirst = far.received.filter(({ body }) => JSON.parse(body).schema === "first_one").map(({ id }) => id)
        expect(toFirst.toSorted()).toEqual(first.toSorted())
        expect((await sides[0]!.call("GET", `/outbound/messages/${first[0]}`)).status).toBe(200)
        expect((await sides[0]!.call("GET", `/outbound/messages/${second[0]}`)).status).toBe(404)
        expect((await sides[1]!.call("GET", `/outbound/messages/${first[0]}`)).status).toBe(404)
        const found = await database.query<{ name: string }>(
          "select distinct schemaname as name from pg_tables where schemaname !~ '^(pg_|information_schema)' order by 1"
        )
        expect(found.rows.map(({ name }) => name)).toEqual([...schemas])
      })
    })
  )
})
