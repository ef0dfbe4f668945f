/**
 * Facts and dead letters that go out over a real RabbitMQ. The sizes are small; POSTHASTE_TEST_SCALE multiplies them.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { clientOf, sharedBroker } from "../servers/sharedBroker.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const SCALE = Number(process.env["POSTHASTE_TEST_SCALE"] ?? 1)

const broker = sharedBroker()

interface Event {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly sequence: string
  readonly status: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A queue that is bound to all that goes out, and what came of it so far, in its order. */
const followed = async (exchange: string, pattern: string) => {
  const queue = `follow-${exchange}`
  await broker.client.exchangeDeclare({ exchange, type: "topic", durable: true })
  await broker.client.queueDelete({ queue })
  await broker.client.queueDeclare({ queue, durable: true })
  await broker.client.queueBind({ queue, exchange, routingKey: pattern })
  const got: Array<{ routingKey: string; contentType: string | undefined; body: unknown }> = []
  const client = await clientOf(broker.rabbitmq.url)
  const consumer = client.createConsumer(
    { queue, queueOptions: { durable: true }, qos: { prefetchCount: 100 } },
    async (message) => {
      const { routingKey, contentType, body } = message
      got.push({ routingKey, contentType, body: Buffer.isBuffer(body) ? JSON.parse(body.toString()) : body })
    }
  )
  consumer.on("error", () => {})
  return { got, close: () => client.unsafeDestroy() }
}

describe("facts over RabbitMQ", () => {
  it.live(
    "are every fact of every message, in the order of each, however often the broker is killed",
    () =>
      Effect.gen(function* () {
        const [events, deadLetters] = yield* Effect.promise(() =>
          Promise.all([followed("posthaste.events", "acme.webhook.*"), followed("posthaste.dead-letters", "#")])
        )
        const database = Redacted.value(yield* freshDatabase)
        const server = yield* product(database, {
          AMQP_URL: broker.rabbitmq.url,
          POSTHASTE_ROLES: "api,worker,relay,projector"
        })
        yield* Effect.promise(async () => {
          const call = api(server.url!, "acme")
          const receiver = createServer((request, response) => {
            request.resume()
            request.on("end", () => response.writeHead(request.url === "/bad" ? 404 : 200).end())
          })
          await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
          const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
          const endpointAt = async (path: string) =>
            (await call("POST", "/webhook-endpoints", { url: `${url}${path}` })).body["id"] as string
          const [good, bad] = [await endpointAt("/good"), await endpointAt("/bad")]
          const send = async (to: string, more: object = {}) =>
            (
              await call("POST", "/outbound/messages", {
                ...{ channel: "webhook", to, eventType: "order.paid", payloadJson: { order: 17 } },
                ...more
              })
            ).body["id"] as string

          const callOps = api(server.url!, "ops")
          const target = await callOps("POST", "/alert-targets", { type: "webhook", url, events: ["broker"] })
          const alerts = async () =>
            (
              await callOps<{ items: ReadonlyArray<{ eventType: string }> }>(
                "GET",
                `/outbound/messages?to=${target.body["id"]}`
              )
            ).body.items.map(({ eventType }) => eventType)
          await until("relay and broker have met", async () => (await ready()).rabbitmq?.status === "ok")
          await broker.rabbitmq.settle()
          const ids: Array<string> = []
          const kills = 1 * SCALE
          for (let kill = 0; kill < kills; kill++) {
            for (let n = 0; n < 20; n++) ids.push(await send(good))
            await broker.rabbitmq.kill()
            for (let n = 0; n < 20; n++) ids.push(await send(good))
            await until("it is told that the broker is away", async () => (await ready()).rabbitmq?.status === "away")
            if (kill === 0) {
              await until("an alert says so", async () => (await alerts()).includes("posthaste.broker.away"))
            }
            await broker.rabbitmq.start()
          }
          await until("an alert says that it is back", async () => (await alerts()).includes("posthaste.broker.back"))
          const dead = await send(bad, { correlationId: "tx_xyz" })
          await until("all is told", () => {
            const last = new Set(
              events.got
                .map(({ body }) => body as Event)
                .filter(({ type }) => ["posthaste.MessageDelivered", "posthaste.MessageFailed"].includes(type))
                .map(({ subject }) => subject)
            )
            return [...ids, dead].every((id) => last.has(id)) && deadLetters.got.length > 0
          })

          const seen = new Map<string, Array<Event>>()
          for (const { body } of events.got) {
            const event = body as Event
            const before = seen.get(event.subject) ?? []
            // At least once: a consumer drops what it knows by its id.
            if (!before.some(({ id }) => id === event.id)) seen.set(event.subject, [...before, event])
          }
          expect(new Set(seen.keys())).toEqual(new Set([...ids, dead]))
          for (const [id, told] of seen) {
            const facts = (
              await call<{ items: ReadonlyArray<Record<string, unknown>> }>("GET", `/outbound/messages/${id}/events`)
            ).body.items
            // What can name a person stays behind.
            expect(
              facts.map(({ type, version, status, data }) => ({
                type: `posthaste.${type}`,
                sequence: String(version),
                status,
                data
              }))
            ).toMatchObject(told.map(({ type, sequence, status, data }) => ({ type, sequence, status, data })))
          }
          const [first] = events.got
          expect(first).toMatchObject({
            routingKey: "acme.webhook.QUEUED",
            contentType: "application/cloudevents+json",
            body: { specversion: "1.0", source: "/posthaste/acme", sequence: "1", datacontenttype: "application/json" }
          })
          expect(deadLetters.got[0]).toMatchObject({ routingKey: "acme.webhook.FAILED" })
          expect(deadLetters.got[0]!.body).toEqual({
            original_topic: "order.paid",
            original_message: { order: 17 },
            error: "answered 404",
            retry_count: 1,
            failed_at: expect.stringMatching(/^\d{4}-/),
            correlation_id: "tx_xyz"
          })
          events.close()
          deadLetters.close()
          receiver.close()

          async function ready() {
            const response = await fetch(`${server.url}/readyz`)
            return (await response.json()) as { rabbitmq?: { status: string } }
          }
        })
      }),
    5 * PATIENCE_MS
  )

  it.live("begin when there is a broker, or with the oldest where that is asked for, and go on where they stand", () =>
    Effect.gen(function* () {
      const events = yield* Effect.promise(() => followed("posthaste.events", "history.#"))
      const start = Effect.fnUntraced(function* (database: string, settings: Record<string, string>) {
        const server = yield* product(database, { POSTHASTE_ROLES: "api,relay,projector", ...settings })
        const call = api(server.url!, "history")
        return { server, call }
      })
      const idsOf = () => new Set(events.got.map(({ body }) => (body as Event).subject))
      for (const from of [null, "beginning"]) {
        const database = Redacted.value(yield* freshDatabase)
        const before = yield* start(database, {})
        const send = async (call: typeof before.call) => {
          const { body } = await call("POST", "/webhook-endpoints", { url: "http://127.0.0.1:9/" })
          const message = { channel: "webhook", to: body["id"], eventType: "a.b", payloadJson: 1 }
          return (await call("POST", "/outbound/messages", message)).body["id"] as string
        }
        const old = yield* Effect.promise(() => send(before.call))
        yield* Effect.promise(() => before.server.stop())
        const settings = { AMQP_URL: broker.rabbitmq.url, ...(from !== null && { POSTHASTE_FACTS_FROM: from }) }
        const first = yield* start(database, settings)
        const fresh = yield* Effect.promise(() => send(first.call))
        yield* Effect.promise(() => until("the new message is told of", () => idsOf().has(fresh)))
        expect(idsOf().has(old)).toBe(from === "beginning")
        yield* Effect.promise(() => first.server.stop())
        // Where facts begin is chosen once.
        const later = yield* start(database, { ...settings, POSTHASTE_FACTS_FROM: "beginning" })
        const last = yield* Effect.promise(() => send(later.call))
        yield* Effect.promise(() => until("the last message is told of", () => idsOf().has(last)))
        expect(idsOf().has(old)).toBe(from === "beginning")
        yield* Effect.promise(() => later.server.stop())
      }
      events.close()
    })
  )
})
