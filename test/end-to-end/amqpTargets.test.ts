/** The channel `amqp` in the whole product, against a real RabbitMQ that is killed, blocked, cut off and robbed of its exchange. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { messagesIn, sharedBroker } from "../servers/sharedBroker.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const broker = sharedBroker()

describe("messages to an AMQP target", () => {
  it.live(
    "all arrive, in the order of their key, through a kill, an alarm, a cut and a missing exchange",
    () =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const server = yield* product(database, {
          POSTHASTE_ROLES: "api,worker",
          POSTHASTE_CIRCUIT_OPEN_MS: "200"
        })
        yield* Effect.promise(async () => {
          const call = api(server.url!, "acme")
          const queue = "orders"
          const exchange = "orders"
          const declare = async () => {
            await broker.client.queueDeclare({ queue, durable: true })
            await broker.client.exchangeDeclare({ exchange, type: "topic", durable: true })
            await broker.client.queueBind({ queue, exchange, routingKey: "order.*" })
          }
          await declare()
          await broker.rabbitmq.settle()
          const made = await call("POST", "/amqp-targets", {
            url: broker.rabbitmq.url,
            exchange,
            routingKey: "order.paid",
            timeoutMs: 1_000,
            retry: { strategy: "fixed", baseMs: 50, attemptsMax: 100 }
          })
          expect(made.status).toBe(201)
          expect(made.body["url"]).toBe(broker.rabbitmq.url.replace("guest:guest", "guest"))
          const to = made.body["id"] as string
          const ids: Array<string> = []
          const send = async (more: object = {}) => {
            const { body } = await call("POST", "/outbound/messages", {
              ...{ channel: "amqp", to, orderingKey: "order-17", payloadJson: { n: ids.length } },
              ...more
            })
            ids.push(body["id"] as string)
          }
          const statusOf = async (id: string) => (await call("GET", `/outbound/messages/${id}`)).body
          const delivered = (id: string) =>
            // The circuit may stay open for as long again as the broker was away, which may need long to start.
            until("it is delivered", async () => (await statusOf(id))["status"] === "DELIVERED", 2 * PATIENCE_MS)
          const some = async () => {
            for (let n = 0; n < 5; n++) await send()
          }

          await some()
          await delivered(ids.at(-1)!)
          await broker.rabbitmq.kill()
          await some()
          await broker.rabbitmq.start()
          await delivered(ids.at(-1)!)

          await broker.rabbitmq.raiseAlarm()
          await some()
          await broker.rabbitmq.clearAlarm()
          await broker.rabbitmq.closeConnections()
          await some()
          await delivered(ids.at(-1)!)

          await broker.client.onConnect(60_000)
          await broker.client.exchangeDelete({ exchange })
          await some()
          const first = ids.at(-5)!
          await until("it waits for the exchange", async () => {
            const { items } = (
              await call<{ items: ReadonlyArray<{ type: string; data: { error?: { code: string } } }> }>(
                "GET",
                `/outbound/messages/${first}/events`
              )
            ).body
            return items.some(({ type, data }) => type === "AttemptDeferred" && data.error?.code === "exchange_missing")
          })
          await declare()
          await delivered(ids.at(-1)!)

          const arrived = (await messagesIn(broker.client, queue)).map(({ messageId }) => messageId!)
          // A message that was published twice came under one id, and before those behind it.
          expect(arrived.filter((id, n) => arrived.indexOf(id) === n)).toEqual(ids)
          expect(arrived.toSorted((a, b) => ids.indexOf(a) - ids.indexOf(b))).toEqual(arrived)

          await send({ routingKey: "nobody", orderingKey: null })
          await until("it is refused", async () => (await statusOf(ids.at(-1)!))["status"] === "FAILED")
          expect((await statusOf(ids.at(-1)!))["lastError"]).toMatchObject({ code: "not_routed", retryable: false })
        })
      }),
    6 * PATIENCE_MS
  )
})
