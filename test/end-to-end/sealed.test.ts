/**
 * Bodies and answers sealed at rest, with the product as its users run it: a dump tells nothing of either, the API, the receivers and
 * an export tell everything, another encryption key changes nothing, and a body that does not open costs no attempt.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { posthaste } from "../servers/commandLine.ts"
import { dumpOf } from "../servers/dump.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { api, operatorKey, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { until } from "../servers/until.ts"

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64")
const sealed = { POSTHASTE_SEAL_BODIES: "true" }

type Listed<A> = { readonly items: ReadonlyArray<A> }

describe("with POSTHASTE_SEAL_BODIES", () => {
  it.live("the database tells nothing of bodies and answers, and everybody else sees what they saw before", () =>
    Effect.gen(function* () {
      const database = Redacted.value(yield* freshDatabase)
      const far = yield* receiver(({ body }) => ({
        status: body.includes("refuse") ? 400 : 200,
        headers: { "x-mark": "mark-of-a-header" },
        body: `mark-of-an-answer to ${body}`
      }))
      const client = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: database })
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      const sql = async (text: string, values: ReadonlyArray<unknown> = []) =>
        (await client.query<Record<string, string>>(text, [...values])).rows
      const server = yield* product(database, sealed)
      const call = api(server.url!, "acme")
      const made = <A extends { id: string }>(path: string, body: unknown) =>
        call<A>("POST", path, body).then(({ status, body: answer }) => {
          expect([path, status]).toEqual([path, 201])
          return answer.id
        })
      const statusOf = async (id: string) =>
        (await call<{ status: string; attempts: number }>("GET", `/outbound/messages/${id}`)).body
      const ended = (id: string, status: string) =>
        until(`${id} to be ${status}`, async () => (await statusOf(id)).status === status)
      const receivedBy = (id: string) => far.received.filter((one) => one.id === id).map(({ body }) => body)

      yield* Effect.promise(async () => {
        const endpoint = await made("/webhook-endpoints", {
          url: far.url,
          retry: { strategy: "fixed", baseMs: 10, attemptsMax: 2 }
        })
        const message = (text: string) => ({
          ...{ channel: "webhook", to: endpoint, eventType: "order.paid" },
          payloadJson: { text, number: 12345 }
        })

        // By each way in, to each ending.
        const request = message("mark-of-a-body")
        const post = (body: unknown) =>
          fetch(`${server.url}/api/v1/outbound/messages`, {
            method: "POST",
            headers: {
              ...{ authorization: `Bearer ${operatorKey}`, "x-org-id": "acme", "content-type": "application/json" },
              "idempotency-key": "order 17"
            },
            body: JSON.stringify(body)
          })
        const first = ((await (await post(request)).json()) as { id: string }).id
        const refused = await made("/outbound/messages", message("refuse mark-of-a-dead-body"))
        await made("/events", { eventType: "order.paid", data: { text: "mark-of-an-event" } })
        const given = await sql("select posthaste.send('acme', $1) as id", [message("mark-in-sql")])
        await sql("select posthaste.send('acme', $1)", [{ ...message("mark-that-is-refused"), to: "nobody" }])
        await ended(first, "DELIVERED")
        await ended(refused, "FAILED")
        await ended(given[0]!["id"]!, "DELIVERED")
        await until("the event to arrive", async () =>
          far.received.some(({ body }) => body.includes("mark-of-an-event"))
        )
        await until("the refusal", async () => {
          const [row] = await sql("select count(*) from posthaste.refused_command")
          return row!["count"] === "1"
        })
        await until("what was delivered to be stored", async () => {
          const [row] = await sql("select count(*) from posthaste.detail where body is not null")
          return row!["count"] === "4"
        })

        const dump = await dumpOf(database)
        const forms = (mark: string) => [
          mark,
          Buffer.from(mark).toString("hex"),
          Buffer.from(mark).toString("base64").slice(0, -4)
        ]
        expect(dump.split("\n").filter((row) => forms("mark-").some((form) => row.includes(form)))).toEqual([])
        expect(dump).toContain("data_key")

        // Repeats are known, the API shows, and whoever exports sees.
        const again = await post(request)
        expect([again.status, ((await again.json()) as { id: string }).id]).toEqual([200, first])
        expect((await post({ ...request, payloadJson: {} })).status).toBe(409)
        expect((await call("GET", `/outbound/messages/${first}/body`)).body).toEqual(request.payloadJson)
        const attempts = await call<Listed<{ response: unknown }>>("GET", `/outbound/messages/${refused}/attempts`)
        expect(attempts.body.items[0]!.response).toMatchObject({
          ...{ status: 400, headers: { "x-mark": "mark-of-a-header" } },
          body: expect.stringContaining("mark-of-an-answer to")
        })
        const run = posthaste({
          DATABASE_URL: database,
          POSTHASTE_ENCRYPTION_KEYS: `${keyOf(9)},${keyOf(5)}`,
          ...sealed
        })
        const file = join(temporaryDirectory(), "streams.ndjson")
        expect((await run(["export", "--with-bodies", "--file", file])).code).toBe(0)
        const exported = readFileSync(file, "utf8")
        for (const mark of ["a-body", "a-dead-body", "an-event", "an-answer", "a-header"]) {
          expect(exported).toContain(`mark-of-${mark}`)
        }
        const keyless = await posthaste({ DATABASE_URL: database, POSTHASTE_DATA_DIR: temporaryDirectory() })([
          "export"
        ])
        expect([keyless.code, keyless.err]).toEqual([1, expect.stringContaining("no encryption key is given")])

        // A body that does not open: the message is parked, its attempt is not used up, and the others go on.
        await call("POST", `/webhook-endpoints/${endpoint}/pause`)
        const spoilt = await made("/outbound/messages", message("spoilt"))
        const [before] = await sql("select body from posthaste.message where id = $1", [spoilt])
        const put = (body: string) => sql("update posthaste.message set body = $2 where id = $1", [spoilt, body])
        await put(`${before!["body"]!.slice(0, -8)}AAAAAAA=`)
        await call("POST", `/webhook-endpoints/${endpoint}/resume`)
        const healthy = await made("/outbound/messages", message("healthy"))
        await ended(healthy, "DELIVERED")
        const parked = async () => (await call<Listed<{ stream: string; reason: string }>>("GET", "/parked")).body.items
        await until("the message to be parked", async () => (await parked()).length === 1)
        expect((await parked())[0]).toMatchObject({ stream: `message-${spoilt}`, reason: "unreadable" })
        expect(await statusOf(spoilt)).toMatchObject({ status: "QUEUED", attempts: 0 })
        await put(before!["body"]!)
        await call("POST", `/parked/retry?stream=message-${spoilt}`)
        await ended(spoilt, "DELIVERED")
        expect(receivedBy(spoilt)).toEqual(['{"text":"spoilt","number":12345}'])

        // Another encryption key: nothing but the keys of the processes is sealed anew, and the old one is needed no more.
        const rekeyed = await run(["rekey", "--json"])
        expect([rekeyed.code, rekeyed.json<{ texts: number }>().texts]).toEqual([0, 0])
        await server.stop()
        return { first, refused, payload: request.payloadJson }
      }).pipe(
        Effect.flatMap(({ first, refused, payload }) =>
          Effect.flatMap(product(database, { ...sealed, POSTHASTE_ENCRYPTION_KEY: keyOf(9) }), ({ url }) =>
            Effect.promise(async () => {
              const young = api(url!, "acme")
              expect((await young("GET", `/outbound/messages/${first}/body`)).body).toEqual(payload)
              await young("POST", `/outbound/messages/${refused}/replay`)
              await until("the replay to arrive", async () => receivedBy(refused).length === 2)
              expect(new Set(receivedBy(refused))).toEqual(
                new Set(['{"text":"refuse mark-of-a-dead-body","number":12345}'])
              )
            })
          )
        )
      )
    }).pipe(Effect.scoped)
  )
})
