/** The product with its streams in EventStoreDB: the server that `EVENTSTORE_URL` names, or the stand-in. */

import { it } from "@effect/vitest"
import { EventStoreDBClient } from "@eventstore/db-client"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { eventStore } from "../servers/eventStore.ts"
import { eventStoreUrl } from "../servers/eventStoreUrl.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, operatorKey, product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS } from "../servers/until.ts"

const org = "acme"
const LEASE_MS = 1_000

interface Message {
  readonly id: string
  readonly status: string
  readonly epoch: number
  readonly attempts: number
}

const until = async <A>(what: string, look: () => Promise<A>, isThere: (found: A) => boolean): Promise<A> => {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (isThere(found)) return found
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}: ${JSON.stringify(found)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** What EventStoreDB itself says of a stream. */
const factsIn = async (client: EventStoreDBClient, id: string) => {
  const types: Array<string> = []
  for await (const { event } of client.readStream(`message-${id}`)) types.push(event!.type.split("@")[0]!)
  return types
}

const retry = { strategy: "fixed", baseMs: 50, attemptsMax: 3 }

describe("the product on EventStoreDB", () => {
  it.live(
    "sends, retries, gives up, replays and cancels, and the streams there tell it",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const streams = yield* eventStoreUrl
        const client = EventStoreDBClient.connectionString(streams)
        yield* Effect.addFinalizer(() => Effect.promise(() => client.dispose()))
        let healed = false
        const far = yield* receiver(({ body }, nth) => ({
          status: body.includes("refused") ? (healed ? 200 : 400) : body.includes("flaky") && nth === 1 ? 503 : 200
        }))
        const { url } = yield* product(database, { EVENTSTORE_URL: streams })
        yield* Effect.promise(async () => {
          const call = api(url!, org)
          const to = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
          const send = async (payloadJson: unknown, more: object = {}) => {
            const { status, body } = await call<Message>("POST", "/outbound/messages", {
              channel: "webhook",
              to,
              payloadJson,
              retry,
              ...more
            })
            expect(status).toBe(201)
            return body.id
          }
          const message = async (id: string) => (await call<Message>("GET", `/outbound/messages/${id}`)).body
          const becomes = (id: string, status: string) =>
            until(
              `${id} is ${status}`,
              () => message(id),
              (found) => found.status === status
            )

          const plain = await send({ n: 1 })
          await becomes(plain, "DELIVERED")
          expect(await factsIn(client, plain)).toEqual([
            "MessageQueued",
            "AttemptStarted",
            "AttemptSucceeded",
            "MessageDelivered"
          ])

          const flaky = await send("flaky")
          expect(await becomes(flaky, "DELIVERED")).toMatchObject({ attempts: 2 })
          expect(far.received.filter(({ id }) => id === flaky)).toHaveLength(2)
          expect(await factsIn(client, flaky)).toEqual([
            "MessageQueued",
            "AttemptStarted",
            "AttemptFailed",
            "AttemptStarted",
            "AttemptSucceeded",
            "MessageDelivered"
          ])

          const refused = await send("refused")
          await becomes(refused, "FAILED")
          const dead = () => call<{ items: ReadonlyArray<Message> }>("GET", "/dead-letters")
          await until("it is a dead letter", dead, ({ body }) => body.items.some(({ id }) => id === refused))
          healed = true
          const replay = await call<{ id: string }>("POST", "/dead-letters/replay", { ids: [refused] })
          expect(replay.status).toBe(202)
          expect(await becomes(refused, "DELIVERED")).toMatchObject({ epoch: 2 })
          const job = () => call<{ status: string }>("GET", `/replays/${replay.body.id}`)
          await until("the replay has ended", job, ({ body }) => body.status === "COMPLETED")

          const later = await send({ n: 2 }, { deliverAt: new Date(Date.now() + 3_600_000).toISOString() })
          expect((await call("POST", `/outbound/messages/${later}/cancel`)).status).toBe(200)
          expect((await message(later)).status).toBe("CANCELLED")
          expect(await factsIn(client, later)).toEqual(["MessageQueued", "MessageCancelled"])

          const stats = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
          await until(
            "the lists are up to date",
            stats,
            ({ body }) => body.byStatus["DELIVERED"] === 3 && body.byStatus["CANCELLED"] === 1
          )
        })
      }),
    300_000
  )

  it.live(
    "refuses with 503 while EventStoreDB is away, and works again when it is back",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const server = yield* eventStore()
        const far = yield* receiver(() => ({ status: 200 }))
        const { url } = yield* product(database, { EVENTSTORE_URL: server.url })
        yield* Effect.promise(async () => {
          const call = api(url!, org)
          const to = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
          const send = (key: string) =>
            fetch(`${url}/api/v1/outbound/messages`, {
              method: "POST",
              headers: {
                authorization: `Bearer ${operatorKey}`,
                "x-org-id": org,
                "content-type": "application/json",
                "idempotency-key": key
              },
              body: JSON.stringify({ channel: "webhook", to, payloadJson: { key } })
            })
          const before = (await (await send("before")).json()) as Message
          server.down()
          const refusals = await Promise.all(["a", "b", "c"].map(send))
          expect(refusals.map(({ status }) => status)).toEqual([503, 503, 503])
          expect(refusals.every(({ headers }) => Number(headers.get("retry-after")) > 0)).toBe(true)
          await server.up()
          // The same requests again, as whoever was refused would do.
          const accepted = await Promise.all(
            ["a", "b", "c"].map((key) =>
              until(
                `${key} is accepted`,
                () => send(key),
                ({ status }) => status < 300
              )
            )
          )
          const ids = await Promise.all(accepted.map(async (response) => ((await response.json()) as Message).id))
          await until(
            "all are delivered",
            async () => far.received.map(({ id }) => id),
            (received) => [before.id, ...ids].every((id) => received.includes(id))
          )
          expect(far.received).toHaveLength(4)
        })
      }),
    300_000
  )

  it.live(
    "loses nothing and leaves nothing stuck when its processes are killed under load",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const streams = yield* eventStoreUrl
        const far = yield* receiver(() => ({ status: 200, afterMs: 10 }))
        const settings = { EVENTSTORE_URL: streams, POSTHASTE_LEASE_MS: String(LEASE_MS) }
        const client = new pg.Client({ connectionString: database })
        yield* Effect.acquireRelease(
          Effect.promise(() => client.connect()),
          () => Effect.promise(() => client.end())
        )
        yield* Effect.promise(async () => {
          const accepted = new Set<string>()
          let to = ""
          for (let kill = 0; kill < 4; kill++) {
            const whole = await startProduct(database, settings)
            const call = api(whole.url!, org)
            if (to === "") to = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
            const message = { channel: "webhook", to, payloadJson: { n: 1 }, retry: { ...retry, attemptsMax: 100 } }
            const load = (async () => {
              for (;;) {
                const { body } = await call<{ items: ReadonlyArray<{ status: number; message: Message }> }>(
                  "POST",
                  "/outbound/messages/batch",
                  { messages: Array.from({ length: 10 }, () => message) }
                )
                for (const item of body.items) if (item.status === 201) accepted.add(item.message.id)
              }
            })().catch(() => {})
            const goal = far.received.length + 60
            await until(
              "some got through",
              async () => far.received.length,
              (count) => count >= goal
            )
            await whole.kill()
            await load
          }
          const survivor = await startProduct(database, settings)
          const call = api(survivor.url!, org)
          const stats = () => call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
          const held = async () => {
            const sql =
              "select (select count(*) from posthaste.claim) + (select count(*) from posthaste.ready) as count"
            return Number((await client.query(sql)).rows[0].count)
          }
          const received = () => new Set(far.received.map(({ id }) => id))
          const reader = EventStoreDBClient.connectionString(streams)
          /** Messages that a killed process has stored, and nobody has brought into the queue yet. */
          const onTheirWay = async () => {
            const { rows } = await client.query("select message_id from posthaste.append_intent")
            const stored = await Promise.all(rows.map((row) => factsIn(reader, row.message_id).catch(() => [])))
            return stored.filter((facts) => facts.length > 0).length
          }
          // In this order: what is on its way is held next. Lists come a moment after the facts, and not all at once.
          await until(
            "all are delivered and listed",
            async () => ({
              onTheirWay: await onTheirWay(),
              held: await held(),
              byStatus: (await stats()).body.byStatus,
              received: received().size
            }),
            ({ onTheirWay, held, byStatus, received }) =>
              onTheirWay === 0 && held === 0 && received >= accepted.size && byStatus["DELIVERED"] === received
          )
          const ids = received()
          console.log(
            `4 kills: ${accepted.size} accepted, ${ids.size} received, ${far.received.length - ids.size} duplicates`
          )
          expect([...accepted].filter((id) => !ids.has(id))).toEqual([])
          // Nothing was sent that no started attempt stands for: duplicates are what kills cost, and nothing else.
          for (const id of ids) {
            const starts = (await factsIn(reader, id)).filter((type) => type === "AttemptStarted")
            const requests = far.received.filter((request) => request.id === id)
            expect(requests.length).toBeLessThanOrEqual(starts.length)
          }
          await reader.dispose()
          expect(await survivor.stop()).toBe(0)
          expect(await held()).toBe(0)
        })
      }),
    300_000
  )
})
