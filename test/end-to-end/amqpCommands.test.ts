/**
 * Commands over a real RabbitMQ to the whole product. The sizes are small; POSTHASTE_TEST_SCALE multiplies them.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import type { AsyncMessage, Envelope } from "rabbitmq-client"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, operatorKey, type Product, product, startProduct } from "../servers/product.ts"
import { clientOf, messagesIn, sharedBroker } from "../servers/sharedBroker.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const COMMANDS = "posthaste.commands"
const REJECTED = "posthaste.commands.rejected"
const SCALE = Number(process.env["POSTHASTE_TEST_SCALE"] ?? 1)

const broker = sharedBroker()

const isDeclared = () =>
  broker.client.queueDeclare({ queue: COMMANDS, passive: true }).then(
    () => true,
    () => false
  )

const posthaste = Effect.fnUntraced(function* (settings: Record<string, string> = {}) {
  yield* Effect.promise(async () => {
    for (const queue of [COMMANDS, REJECTED]) await broker.client.queueDelete({ queue }).catch(() => {})
  })
  const database = Redacted.value(yield* freshDatabase)
  const env = { AMQP_URL: broker.rabbitmq.url, POSTHASTE_ROLES: "api,relay,projector", ...settings }
  const server = yield* product(database, env)
  const call = api(server.url!, "acme")
  const endpoint = yield* Effect.promise(async () => {
    if (env.POSTHASTE_ROLES.includes("relay")) await until("the queue is there", isDeclared, WITHIN_MS)
    return (await call("POST", "/webhook-endpoints", { url: "http://127.0.0.1:9/" })).body["id"] as string
  })
  return { database, env, server, call, endpoint }
})

const publisherOf = (client: Awaited<ReturnType<typeof clientOf>>) => client.createPublisher({ confirm: true })

const command = (messageId: string, more: Partial<Envelope> = {}): Envelope => ({
  routingKey: COMMANDS,
  durable: true,
  messageId,
  type: "SendMessage",
  contentType: "application/json",
  headers: { "x-org-id": "acme" },
  ...more
})

const send = (to: string, payload: string, more: object = {}) =>
  Buffer.from(
    `{"channel":"webhook","to":"${to}","eventType":"a.b",${JSON.stringify(more).slice(1, -1)}${Object.keys(more).length > 0 ? "," : ""}"payloadJson":${payload}}`
  )

const problemIn = (message: AsyncMessage) => JSON.parse(String(message.headers!["x-problem"]))

const depth = async (queue: string) => (await broker.client.queueDeclare({ queue, passive: true })).messageCount

const WITHIN_MS = PATIENCE_MS * SCALE

type Call = ReturnType<typeof api>

interface Listed {
  readonly id: string
  readonly status: string
  readonly correlationId: string | null
}

interface Page {
  readonly items: ReadonlyArray<Listed>
  readonly nextCursor: string | null
}

/** In the order of their acceptance: by their ids. */
const accepted = async (call: Call): Promise<ReadonlyArray<Listed>> => {
  const items: Array<Listed> = []
  for (let cursor: string | null = null, last = false; !last; last = cursor === null) {
    const path: string = `/outbound/messages?limit=200${cursor === null ? "" : `&cursor=${cursor}`}`
    const { body }: { readonly body: Page } = await call<Page>("GET", path)
    items.push(...body.items)
    cursor = body.nextCursor
  }
  return items.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

const untilAccepted = async (call: Call, count: number) => {
  await until("the queue is read", async () => (await depth(COMMANDS)) === 0, WITHIN_MS)
  await until("all are accepted and listed", async () => (await accepted(call)).length >= count, WITHIN_MS)
}

describe("commands over RabbitMQ", () => {
  it.live("are decided like requests over HTTP, once each, with the digits they were written with", () =>
    Effect.gen(function* () {
      const { server, call, endpoint } = yield* posthaste({ POSTHASTE_ROLES: "api,worker,relay,projector" })
      yield* Effect.promise(async () => {
        const out = publisherOf(broker.client)
        const received = await receiverOf()
        await call("PATCH", `/webhook-endpoints/${endpoint}`, { url: received.url })
        const payload = `{ "d": 1.10, "big": 12345678901234567890 }`
        await out.send(command("k-1"), send(endpoint, payload))
        // Once more, as after a lost confirm.
        await out.send(command("k-1"), send(endpoint, payload))
        await untilAccepted(call, 1)
        await until("it is delivered", () => received.bodies.length > 0, WITHIN_MS)
        expect(received.bodies[0]).toBe(payload)
        // Over HTTP the key is known, too.
        const again = await fetch(`${server.url}/api/v1/outbound/messages`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${operatorKey}`,
            "x-org-id": "acme",
            "content-type": "application/json",
            "idempotency-key": "k-1"
          },
          body: send(endpoint, payload)
        })
        expect(again.status).toBe(200)
        // Another request under the same key is refused.
        await out.send(command("k-1"), send(endpoint, `{"n":4}`))
        await until("it is refused", async () => (await depth(REJECTED)) === 1, WITHIN_MS)
        const [refused] = await messagesIn(broker.client, REJECTED)
        expect(problemIn(refused!)).toMatchObject({ status: 409, type: "urn:posthaste:problem:idempotency-key-reused" })
        expect(await accepted(call)).toHaveLength(1)
        received.close()
      })
    })
  )

  it.live("accepts all that is good among poison, in its order, and says of the rest what is wrong with it", () =>
    Effect.gen(function* () {
      const { call, endpoint } = yield* posthaste()
      yield* Effect.promise(async () => {
        const out = publisherOf(broker.client)
        const total = 500 * SCALE
        const good: Array<string> = []
        const bad = new Map<string, { field?: string; status: number; body: Buffer }>()
        const big = Buffer.alloc(5 * 1024 * 1024, "x")
        const poisons: ReadonlyArray<(key: string) => readonly [Envelope, Buffer, number, string?]> = [
          (key) => [command(key), Buffer.from('{"channel":'), 400],
          (key) => [command(key, { type: "SendMesage" }), send(endpoint, "1"), 400, "type"],
          (key) => [command(key, { headers: { "x-org-id": "no org" } }), send(endpoint, "1"), 400, "x-org-id"],
          (key) => [command(key), big, 413],
          (key) => [command(key, { contentType: "text/plain" }), send(endpoint, "1"), 415],
          (key) => [command(key, { headers: { "x-org-id": "globex" } }), send(endpoint, "1"), 400, "to"],
          (key) => [command(key), send(endpoint, "1", { orderingkey: "x" }), 400, "orderingkey"],
          (key) => [command(key, { contentEncoding: "gzip" }), send(endpoint, "1"), 415]
        ]
        for (let n = 0; n < total; n++) {
          const key = `k-${String(n).padStart(6, "0")}`
          if (n % 20 !== 7) {
            good.push(key)
            void out.send(command(key), send(endpoint, "1", { correlationId: key }))
            continue
          }
          const [envelope, body, status, field] = poisons[Math.floor(n / 20) % poisons.length]!(key)
          bad.set(key, { status, body, ...(field !== undefined && { field }) })
          await out.send(envelope, body)
        }
        await untilAccepted(call, good.length)
        expect((await accepted(call)).map(({ correlationId }) => correlationId)).toEqual(good)
        await until("all are refused", async () => (await depth(REJECTED)) >= bad.size, WITHIN_MS)
        const rejected = await messagesIn(broker.client, REJECTED)
        expect(rejected.map(({ messageId }) => messageId)).toEqual([...bad.keys()])
        for (const refused of rejected) {
          const { status, field, body } = bad.get(refused.messageId!)!
          const problem = problemIn(refused)
          expect(problem.status).toBe(status)
          if (field !== undefined) expect(problem.errors.map((one: { field: string }) => one.field)).toContain(field)
          // The client of this test reads what is called JSON; other bodies it leaves alone.
          if (Buffer.isBuffer(refused.body)) expect(refused.body.equals(body)).toBe(true)
        }
      })
    })
  )

  it.live("needs a messageId, by which a command that comes once more is told from another one", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* posthaste()
      yield* Effect.promise(async () => {
        await publisherOf(broker.client).send(command(""), send(endpoint, "1"))
        await until("it is refused", async () => (await depth(REJECTED)) === 1, WITHIN_MS)
        const [refused] = await messagesIn(broker.client, REJECTED)
        expect(problemIn(refused!).errors).toEqual([
          { field: "messageId", reason: "is required: it is the idempotency key" }
        ])
      })
    })
  )

  it.live("cancel and replay, once each however often they come, and are answered where they ask for it", () =>
    Effect.gen(function* () {
      const { call, endpoint } = yield* posthaste({ POSTHASTE_ROLES: "api,worker,relay,projector" })
      yield* Effect.promise(async () => {
        const { queue } = await broker.client.queueDeclare({ exclusive: true })
        const out = publisherOf(broker.client)
        const ask = async (messageId: string, type: string, body: Buffer) => {
          await out.send(command(messageId, { type, replyTo: queue, correlationId: `c-${messageId}` }), body)
          let answer: AsyncMessage | undefined
          await until(
            `${messageId} is answered`,
            async () => {
              answer = (await messagesIn(broker.client, queue))[0]
              return answer !== undefined
            },
            WITHIN_MS
          )
          expect(answer!.correlationId).toBe(`c-${messageId}`)
          return answer!
        }
        const sent = await ask("s-1", "SendMessage", send(endpoint, "1", { deliverAt: "2100-01-01T00:00:00Z" }))
        const { id, status } = sent.body as Listed
        expect([sent.contentType, status]).toEqual(["application/json", "QUEUED"])
        const body = Buffer.from(JSON.stringify({ id }))
        for (const _ of [1, 2])
          expect((await ask("c-1", "CancelMessage", body)).body).toMatchObject({ id, status: "CANCELLED" })
        const refused = await ask("c-2", "CancelMessage", body)
        expect(refused.contentType).toBe("application/problem+json")
        expect(JSON.parse(String(refused.body))).toMatchObject({ status: 409 })
        expect(JSON.parse(String((await ask("c-3", "CancelMessage", Buffer.from('{"id":"x"}'))).body))).toMatchObject({
          status: 404
        })

        const policy = { retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } }
        const { id: dead } = (await ask("s-2", "SendMessage", send(endpoint, "1", policy))).body as Listed
        const ends = (epoch: number) =>
          until(
            "it is a dead letter",
            async () => {
              const { body } = await call("GET", `/outbound/messages/${dead}`)
              return body["status"] === "DEAD_LETTER" && body["epoch"] === epoch
            },
            WITHIN_MS
          )
        await ends(1)
        const again = Buffer.from(JSON.stringify({ id: dead, reason: "try again" }))
        expect((await ask("r-1", "ReplayMessage", again)).body).toMatchObject({ status: "QUEUED", epoch: 2 })
        await ends(2)
        // The same command, brought once more after its message has failed again.
        expect((await ask("r-1", "ReplayMessage", again)).body).toMatchObject({ epoch: 2 })
        expect((await call("GET", `/outbound/messages/${dead}`)).body).toMatchObject({
          epoch: 2,
          status: "DEAD_LETTER"
        })
      })
    })
  )

  it.live(
    "are accepted once each, and all that was confirmed, however often broker and relay are killed",
    () =>
      Effect.gen(function* () {
        const { database, env, server, endpoint } = yield* posthaste({ POSTHASTE_ROLES: "api" })
        yield* Effect.promise(async () => {
          const first = await startProduct(database, { ...env, POSTHASTE_ROLES: "relay" })
          await until("the queue is there", isDeclared, WITHIN_MS)
          await first.kill()
          await broker.rabbitmq.settle()
          await broker.client.onConnect(60_000)
          const kills = 2 * SCALE
          const confirmed: Array<string> = []
          let isOver = false
          const publishers = Array.from({ length: 8 }, async (_, w) => {
            const client = await clientOf(broker.rabbitmq.url)
            const out = publisherOf(client)
            for (let n = 0; !isOver; n++) {
              const key = `k-${w}-${String(n).padStart(6, "0")}`
              const body = send(endpoint, "1", { correlationId: key })
              for (;;) {
                try {
                  await out.send(command(key), body)
                  break
                } catch {
                  if (isOver) return client.unsafeDestroy()
                  await new Promise((resolve) => setTimeout(resolve, 100))
                }
              }
              confirmed.push(key)
              await new Promise((resolve) => setTimeout(resolve, 10))
            }
            client.unsafeDestroy()
          })
          const relayEnv = { ...env, POSTHASTE_ROLES: "relay" }
          let relay: Product = await startProduct(database, relayEnv)
          for (let n = 0; n < kills; n++) {
            await new Promise((resolve) => setTimeout(resolve, 500))
            await relay.kill()
            relay = await startProduct(database, relayEnv)
            await new Promise((resolve) => setTimeout(resolve, 500))
            await broker.rabbitmq.kill()
            await broker.rabbitmq.start()
          }
          isOver = true
          await Promise.all(publishers)
          await broker.client.onConnect(60_000)
          let found: ReadonlyArray<string> = []
          await until(
            "all that was confirmed is accepted",
            async () => {
              found = await correlationIds(database)
              const known = new Set(found)
              return confirmed.every((key) => known.has(key))
            },
            WITHIN_MS
          )
          expect(new Set(found).size).toBe(found.length)
          // A publisher that was stopped may not have learned of its last one.
          expect(found.length - new Set(confirmed).size).toBeLessThanOrEqual(8)
          expect(await depth(REJECTED)).toBe(0)
          await relay.kill()
          console.log(`${confirmed.length} commands over ${kills} kills of each`)
          expect(server.url).not.toBeNull()
        })
      }),
    600_000 * SCALE
  )

  it.live("touch nothing of another kind that has their queue's name, and say so in one line", () =>
    Effect.gen(function* () {
      yield* Effect.promise(async () => {
        await broker.client.queueDelete({ queue: COMMANDS }).catch(() => {})
        await broker.client.queueDeclare({ queue: COMMANDS, durable: true })
      })
      const database = Redacted.value(yield* freshDatabase)
      const server = yield* product(database, { AMQP_URL: broker.rabbitmq.url, POSTHASTE_ROLES: "api,relay" })
      yield* Effect.promise(async () => {
        const line = /RabbitMQ has a queue posthaste\.commands that is not as Posthaste needs it/g
        await until("it says so", () => line.test(server.printed()), WITHIN_MS)
        await broker.client.queueDelete({ queue: COMMANDS })
        await until("it is back", () => server.printed().includes("RabbitMQ is back"), WITHIN_MS)
        expect(server.printed().match(line)).toHaveLength(1)
      })
    })
  )
})

/** Of all messages there are. */
const correlationIds = async (database: string): Promise<ReadonlyArray<string>> => {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query<{ id: string }>(
    "select m.correlation_id as id from posthaste.event e join posthaste.message m on m.id = e.stream_id where e.version = 1"
  )
  await client.end()
  return rows.map(({ id }) => id)
}

/** An endpoint of a user that keeps what it got. */
const receiverOf = async () => {
  const bodies: Array<string> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => {
      body += String(chunk)
    })
    request.on("end", () => {
      bodies.push(body)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, bodies, close: () => server.close() }
}
