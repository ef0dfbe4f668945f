import { randomUUID } from "node:crypto"
import { connect, createServer, type Server, type Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import * as AmqpChannel from "../../../../src/adapters/channels/amqp/AmqpChannel.ts"
import type { AmqpTargetSettings } from "../../../../src/adapters/channels/amqp/settings.ts"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { OutboundMessage, Reply } from "../../../../src/application/ports/Channels.ts"
import type { OpenDestination } from "../../../../src/application/ports/Destinations.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { amqp, destinationOf, senderKnowing } from "../../../contracts/destinations/samples.ts"
import { messagesIn, sharedBroker } from "../../../servers/sharedBroker.ts"
import { until } from "../../../servers/until.ts"

const broker = sharedBroker()
const org = OrgId.make("acme")

const targetAt = (url: string, change: Partial<AmqpTargetSettings>): OpenDestination<AmqpTargetSettings> => {
  const { text, secret } = amqp.secrets["password"]!.within!.takenOut(url)
  return {
    destination: destinationOf<AmqpTargetSettings>(amqp, org, {
      url: text,
      exchange: "",
      maxInFlight: 50,
      timeoutMs: 15_000,
      ...change
    }),
    secrets: secret === null ? {} : { password: Redacted.make(secret) },
    previousSecrets: []
  }
}

const channelFor = (target: OpenDestination<AmqpTargetSettings>, networks = "127.0.0.0/8") =>
  senderKnowing(
    AmqpChannel.channel({ allowedNetworks: Result.getOrThrow(parseNetworks(networks)), exemptions: [] }),
    () => Effect.succeed(target)
  )

const aMessage = (change: Partial<OutboundMessage> = {}): OutboundMessage => ({
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: DestinationId.make(randomUUID()),
  to: "target",
  epoch: 1,
  attempt: 1,
  eventType: "order.paid",
  templateCode: null,
  correlationId: "c-17",
  body: '{"amount":12345678901234567890}',
  ...change
})

const said = ({ outcome }: Reply) => [outcome.type, outcome.type === "Accepted" ? null : outcome.error.code]

const newQueue = async (args: Readonly<Record<string, unknown>> = {}) => {
  const queue = `q-${randomUUID()}`
  await broker.client.queueDeclare({ queue, durable: true, arguments: args })
  return queue
}

/** A way to the broker that can be held up and cut. */
const wire = () =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const pairs = new Set<readonly [Socket, Socket]>()
      let held = false
      const server: Server = createServer((near) => {
        const far = connect(Number(new URL(broker.rabbitmq.url).port), "127.0.0.1")
        const pair = [near, far] as const
        pairs.add(pair)
        near.pipe(far)
        far.on("data", (chunk) => held || near.write(chunk))
        for (const [one, other] of [pair, [far, near]] as const) {
          one.on("error", () => {})
          one.on("close", () => other.destroy())
        }
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const url = new URL(broker.rabbitmq.url)
      url.port = String((server.address() as { port: number }).port)
      return {
        url: url.href,
        /** Answers of the broker are lost from now on. */
        hold: () => {
          held = true
        },
        cut: () => {
          held = false
          for (const [near, far] of pairs) {
            near.destroy()
            far.destroy()
          }
          pairs.clear()
        },
        close: () => server.close()
      }
    }),
    ({ cut, close }) =>
      Effect.sync(() => {
        close()
        cut()
      })
  )

describe("a message to an AMQP target", () => {
  it.live("carries the exact bytes, persistent, under the message's id, and is delivered once it is confirmed", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: queue }))
      const message = aMessage({ body: '{ "n": 12345678901234567890, "d": 1.10, "s": "Åse 🐎" }\n' })
      const { outcome } = yield* channel.send(message)
      expect(outcome).toMatchObject({ type: "Accepted", delivered: true })

      const [got] = yield* Effect.promise(() => messagesIn(broker.client, queue))
      // The client of this test reads JSON where it is called JSON: what it was is compared by its size.
      expect(got!.body).toEqual(JSON.parse(message.body))
      expect(got).toMatchObject({
        durable: true,
        messageId: message.messageId,
        contentType: "application/json",
        type: "order.paid",
        correlationId: "c-17",
        headers: { "x-org-id": "acme", "x-try": "1.1" }
      })
    })
  )

  it.live("goes by its own routing key before the target's", () =>
    Effect.gen(function* () {
      const [own, other] = yield* Effect.promise(() => Promise.all([newQueue(), newQueue()]))
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: other }))
      yield* channel.send(aMessage({ routingKey: own }))
      expect(yield* Effect.promise(() => messagesIn(broker.client, own))).toHaveLength(1)
      expect(yield* Effect.promise(() => messagesIn(broker.client, other))).toHaveLength(0)
    })
  )

  it.live("is refused by name when nobody is bound, and only that message, among many under way", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: queue }))
      const replies = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? null : "nobody.is.bound")),
        (routingKey) => channel.send(aMessage(routingKey === null ? {} : { routingKey })),
        { concurrency: "unbounded" }
      )
      expect(replies.map(said)).toEqual(
        replies.map((_, n) => (n % 2 === 0 ? ["Accepted", null] : ["Refused", "not_routed"]))
      )
    })
  )

  it.live("may be sent again when the broker says no: a full queue", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue({ "x-max-length": 1, "x-overflow": "reject-publish" }))
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: queue }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "nacked"])
    })
  )

  it.live("waits, and uses up nothing, while the exchange does not exist, and is taken once it does", () =>
    Effect.gen(function* () {
      const exchange = `x-${randomUUID()}`
      const queue = yield* Effect.promise(() => newQueue())
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { exchange }))
      const declare = async () => {
        await broker.client.exchangeDeclare({ exchange, type: "fanout" })
        await broker.client.queueBind({ exchange, queue })
      }
      const missing = yield* Effect.forEach([1, 2, 3], () => channel.send(aMessage()), { concurrency: "unbounded" })
      expect(missing.map(said)).toEqual(Array(3).fill(["Deferred", "exchange_missing"]))
      expect(missing[0]!.outcome).toMatchObject({ scope: "circuit" })
      yield* Effect.promise(declare)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
      yield* Effect.promise(() => broker.client.exchangeDelete({ exchange }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Deferred", "exchange_missing"])
      yield* Effect.promise(declare)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
    })
  )

  it.live("waits, and uses up nothing, while the broker refuses the login", () =>
    Effect.gen(function* () {
      const url = new URL(broker.rabbitmq.url)
      url.password = "wrong"
      const channel = yield* channelFor(targetAt(url.href, {}))
      const { outcome } = yield* channel.send(aMessage())
      expect(outcome).toMatchObject({ type: "Deferred", scope: "circuit", error: { code: "login_refused" } })
      url.password = "guest"
      url.pathname = "/no-such-vhost"
      const other = yield* channelFor(targetAt(url.href, {}))
      expect(said(yield* other.send(aMessage()))).toEqual(["Deferred", "login_refused"])
    })
  )

  it.live("is in doubt when the network is cut before the confirm: sent again, or left to a person", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      for (const unconfirmed of ["resend", "deadLetter"] as const) {
        const line = yield* wire()
        const channel = yield* channelFor(targetAt(line.url, { routingKey: queue, unconfirmed }))
        expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
        line.hold()
        const [reply] = yield* Effect.all(
          [
            channel.send(aMessage()),
            Effect.promise(async () => {
              await until("the broker has it", async () => (await depth(queue)) > 1)
              line.cut()
            })
          ],
          { concurrency: "unbounded" }
        )
        expect(said(reply)).toEqual([unconfirmed === "resend" ? "Unreachable" : "Unknown", "unconfirmed"])
        expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
        yield* Effect.promise(() => messagesIn(broker.client, queue))
      }
    })
  )

  it.live("is in doubt when no confirm comes in time, and the silent connection is not used again", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      const line = yield* wire()
      const channel = yield* channelFor(targetAt(line.url, { routingKey: queue, timeoutMs: 3_000 }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
      line.hold()
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "unconfirmed"])
      line.cut()
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
    })
  )

  it.live("waits, and uses up nothing, while the broker is known to take no messages", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: queue, timeoutMs: 3_000 }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
      yield* Effect.promise(() => broker.rabbitmq.raiseAlarm())
      // The broker says so once it is given a message, which it may take later.
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "broker_blocked"])
      const { outcome } = yield* channel.send(aMessage())
      expect(outcome).toMatchObject({ type: "Deferred", scope: "lane", error: { code: "broker_blocked" } })
      yield* Effect.promise(() => broker.rabbitmq.clearAlarm())
      yield* Effect.promise(() =>
        until("it takes messages again", async () => {
          const reply = await Effect.runPromise(channel.send(aMessage()))
          return reply.outcome.type === "Accepted"
        })
      )
    })
  )

  it.live("fails on connecting to a broker that is away, and is taken once it is back", () =>
    Effect.gen(function* () {
      const queue = yield* Effect.promise(() => newQueue())
      const channel = yield* channelFor(targetAt(broker.rabbitmq.url, { routingKey: queue }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
      yield* Effect.promise(() => broker.rabbitmq.kill())
      const first = said(yield* channel.send(aMessage()))
      expect(["connection_failed", "unconfirmed"]).toContain(first[1])
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "connection_failed"])
      yield* Effect.promise(() => broker.rabbitmq.start())
      // A broker that is killed may forget what was declared a moment before.
      yield* Effect.promise(() => broker.client.queueDeclare({ queue, durable: true }))
      expect(said(yield* channel.send(aMessage()))).toEqual(["Accepted", null])
    })
  )

  it.live("goes to no address that Posthaste may not call", () =>
    Effect.gen(function* () {
      const url = new URL(broker.rabbitmq.url)
      const literal = yield* channelFor(targetAt(url.href, {}), "10.0.0.0/8")
      expect(said(yield* literal.send(aMessage()))).toEqual(["Refused", "forbidden_address"])
      url.hostname = "ip6-localhost.example"
      const resolved = yield* senderKnowing(
        AmqpChannel.channel({ allowedNetworks: [], exemptions: [] }, (_, callback) =>
          callback(null, [{ address: "127.0.0.1", family: 4 }])
        ),
        () => Effect.succeed(targetAt(url.href, {}))
      )
      expect(said(yield* resolved.send(aMessage()))).toEqual(["Refused", "forbidden_address"])
    })
  )
})

const depth = async (queue: string): Promise<number> =>
  (await broker.client.queueDeclare({ queue, passive: true })).messageCount

describe("the settings of an AMQP target", () => {
  const faultsOf = (url: string) =>
    amqp.faultsOf({
      settings: { url } as never,
      secretNames: [],
      secrets: {},
      given: ["url"],
      before: null
    })

  it.each([
    "http://127.0.0.1",
    "amqp://",
    "127.0.0.1:5672",
    "amqp://127.0.0.1/a/b",
    "amqp://127.0.0.1/%ff",
    "amqp://127.0.0.1/?heartbeat=0",
    "amqp://10.0.0.1/",
    "amqp://[::1]/",
    "amqp://localhost/"
  ])("refuse %s, and name the url", (url) => {
    const found = faultsOf(url)
    if (url === "amqp://localhost/") expect(found).toEqual([])
    else expect(found.map(({ field }) => field)).toEqual(["url"])
  })
})
