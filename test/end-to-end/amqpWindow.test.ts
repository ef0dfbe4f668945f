/** What a process that reads commands holds in memory, and what it does while the store is away: on a real RabbitMQ. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import pg from "pg"
import { connect } from "../../src/adapters/rabbitmq/client/connect.ts"
import { deliveriesOf } from "../../src/adapters/rabbitmq/deliveries.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { proxyTo } from "../servers/proxy.ts"
import { sharedBroker } from "../servers/sharedBroker.ts"
import { until } from "../servers/until.ts"

const broker = sharedBroker()

const filled = async (bodies: ReadonlyArray<Buffer>) => {
  const queue = `window-${randomUUID()}`
  await broker.client.queueDeclare({
    queue,
    durable: true,
    arguments: { "x-queue-type": "quorum", "x-single-active-consumer": true }
  })
  const out = broker.client.createPublisher({ confirm: true })
  for (const [n, body] of bodies.entries()) {
    await out.send({ routingKey: queue, durable: true, messageId: String(n), contentType: "application/json" }, body)
  }
  await out.close()
  return queue
}

const receiving = Effect.suspend(() =>
  connect({ url: Redacted.make(broker.rabbitmq.url), name: "window", timeout: Duration.seconds(30) })
)

describe("the deliveries of a queue", () => {
  it.live(
    "come in their order, once each where nothing is lost, and are never more at once than the window holds",
    () =>
      Effect.gen(function* () {
        const LARGEST = 1_000_000
        // Small ones, large ones of which few fit, small ones again, and one that fits nowhere.
        const [small, large] = [Array(60).fill(100), Array(40).fill(LARGEST)]
        const sizes = [...small, ...large, ...small, 5_000_000, ...small]
        const queue = yield* Effect.promise(() => filled(sizes.map((size) => Buffer.alloc(size, "x"))))
        const link = yield* receiving
        const window = { count: 50, bytes: 3 * LARGEST }
        const deliveries = yield* deliveriesOf(link, queue, window)
        const taken: Array<number> = []
        const atOnce: Array<{ first: number; count: number; bytes: number }> = []
        while (taken.length < sizes.length) {
          // Nothing is acknowledged meanwhile, so all that is here is what the window holds.
          yield* Effect.sleep("30 millis")
          const all = yield* deliveries.take(10_000)
          const numbers = all.map(({ messageId }) => Number(messageId))
          atOnce.push({
            first: numbers[0]!,
            count: all.length,
            bytes: all.reduce((sum, { body }) => sum + body.length, 0) - Math.max(...all.map(({ body }) => body.length))
          })
          taken.push(...numbers)
          yield* deliveries.acknowledge(all.at(-1)!)
        }
        expect(taken).toEqual(sizes.map((_, n) => n))
        for (const { first, bytes } of atOnce) {
          // Beside one of any size, what the socket had read already: another one, at most.
          expect(bytes, `from ${first} on`).toBeLessThan(window.bytes + LARGEST + 200_000)
        }
        const left = yield* Effect.promise(() => broker.client.queueDeclare({ queue, passive: true }))
        expect(left.messageCount).toBe(0)
      }).pipe(Effect.scoped)
  )

  it.live("keep their bytes, whatever they are said to be", () =>
    Effect.gen(function* () {
      const body = Buffer.from('{"n": 1.10, "x": "\\ud800"}\xff', "latin1")
      const queue = yield* Effect.promise(() => filled([body]))
      const deliveries = yield* deliveriesOf(yield* receiving, queue, { count: 1, bytes: 1 })
      const [delivery] = yield* deliveries.take(1)
      expect(delivery!.body.equals(body)).toBe(true)
      expect(delivery!.contentType).toBe("application/json")
    }).pipe(Effect.scoped)
  )
})

describe("commands over RabbitMQ while the store is away", () => {
  it.live("wait in their queue, and are accepted once each in their order when it is back", () =>
    Effect.gen(function* () {
      const direct = new URL(Redacted.value(yield* freshDatabase))
      const proxy = yield* proxyTo({ host: direct.hostname, port: Number(direct.port) })
      const through = new URL(direct)
      through.port = String(proxy.port)
      const api1 = yield* product(direct.href, { POSTHASTE_ROLES: "api" })
      const relay = yield* product(through.href, { POSTHASTE_ROLES: "relay", AMQP_URL: broker.rabbitmq.url })
      yield* Effect.promise(async () => {
        const call = api(api1.url!, "acme")
        const endpoint = (await call("POST", "/webhook-endpoints", { url: "http://127.0.0.1:9/" })).body["id"]
        const out = broker.client.createPublisher({ confirm: true })
        const depth = async (queue: string) => (await broker.client.queueDeclare({ queue, passive: true })).messageCount
        await until("the queue is there", () =>
          depth("posthaste.commands").then(
            () => true,
            () => false
          )
        )
        const publish = async (from: number, to: number) => {
          for (let n = from; n < to; n++) {
            const body = {
              channel: "webhook",
              to: endpoint,
              eventType: "a.b",
              correlationId: String(n),
              payloadJson: n
            }
            await out.send(
              {
                ...{ routingKey: "posthaste.commands", durable: true, messageId: `k-${n}`, type: "SendMessage" },
                ...{ contentType: "application/json", headers: { "x-org-id": "acme" } }
              },
              Buffer.from(JSON.stringify(body))
            )
          }
        }
        const client = new pg.Client({ connectionString: direct.href })
        await client.connect()
        const accepted = async () =>
          (
            await client.query<{ id: string }>(
              "select m.correlation_id as id from posthaste.event e join posthaste.message m on m.id = e.stream_id where e.version = 1 order by e.tx, e.position"
            )
          ).rows.map(({ id }) => Number(id))
        await publish(0, 50)
        await until("the first are accepted", async () => (await accepted()).length === 50)
        // Connections stay open and carry nothing, also for whoever connects anew: a commit may be lost with its answer.
        const busy = publish(50, 150)
        await until("some are under way", async () => (await accepted()).length > 50)
        proxy.fallSilent(true)
        await busy
        await publish(150, 200)
        const during = (await accepted()).length
        expect(during).toBeLessThan(200)
        await until("it says that it waits", () => /wait for the store|store does not answer/.test(relay.printed()))
        expect(await depth("posthaste.commands.rejected")).toBe(0)
        proxy.heal()
        await until("all are accepted", async () => (await accepted()).length >= 200)
        expect(await accepted()).toEqual(Array.from({ length: 200 }, (_, n) => n))
        expect(await depth("posthaste.commands.rejected")).toBe(0)
        await until("none is left", async () => (await depth("posthaste.commands")) === 0)
        // Nor were they given back meanwhile: a broker counts how often that happens, and puts aside what it counts too often.
        expect(relay.printed()).not.toMatch(/wait for RabbitMQ/)
        await client.end()
        await out.close()
      })
    })
  )
})
