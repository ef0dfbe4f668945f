/**
 * `npm run example`: three services that live of Posthaste. It starts PostgreSQL, RabbitMQ, Posthaste and the services on ports
 * and data of its own, places orders, and shows the way of every message: one order is paid and packed, one is declined and
 * undone, one can't be reserved and sends nothing. Leaves nothing behind.
 */
import { spawn } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Redacted, Schema } from "effect"
import { type Message, Posthaste } from "posthaste"
import { Connection } from "rabbitmq-client"
import * as EmbeddedPostgres from "../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { freePort } from "../../src/adapters/embedded-postgres/freePort.ts"
import { startupErrorOf } from "../../src/setup/startupError.ts"
import { scriptFlags } from "../../test/servers/scriptFlags.ts"
import * as RabbitMQ from "./RabbitMQ.ts"

scriptFlags({})

class ServiceEnded extends Schema.TaggedError<ServiceEnded>()("ServiceEnded", { message: Schema.String }) {}

const say = (text: string) => Console.log(`\n${text}`)

/** A program in a process of its own. Ready when it says so; what it says is shown under its name. */
const service = Effect.fnUntraced(function* (
  name: string,
  file: string,
  env: Record<string, string>,
  isReady: (line: string) => boolean,
  show = true
) {
  const said: Array<string> = []
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [file], {
        env: { PATH: process.env["PATH"], ...env },
        // Of its own: Ctrl-C reaches it through us, so that it is stopped once and waited for.
        detached: true,
        stdio: ["ignore", "pipe", "pipe"]
      })
    ),
    (child) =>
      Effect.promise(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill("SIGTERM")
        await once(child, "exit")
      })
  )
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      said.push(line)
      if (show) console.log(`  ${name.padEnd(10)} ${line}`)
    })
  }
  while (!said.some(isReady)) {
    if (child.exitCode !== null) return yield* new ServiceEnded({ message: `${name} ended: ${said.join("\n")}` })
    yield* Effect.sleep("20 millis")
  }
  return said
})

const isOpen = (line: string) => line === "is open"

const example = Effect.gen(function* () {
  const rabbitmq = yield* RabbitMQ.program
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "posthaste-orders-")))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  )

  yield* say("Starting PostgreSQL, RabbitMQ, Posthaste and three services …")
  const amqpUrl = yield* RabbitMQ.start(rabbitmq)
  const database = yield* EmbeddedPostgres.start({ directory: join(home, "data") })
  const databaseUrl = Redacted.value(database.url)
  const [port, shopPort, warehousePort] = [yield* freePort, yield* freePort, yield* freePort]
  const apiKey = randomBytes(24).toString("base64url")
  const settings = {
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    POSTHASTE_OPERATOR_KEY: apiKey,
    POSTHASTE_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    POSTHASTE_ALLOWED_NETWORKS: "127.0.0.1/32"
  }
  const main = join(import.meta.dirname, "../../src/main.ts")
  yield* service("posthaste", main, settings, (line) => line.includes("API docs"), false)

  // Each service is an org of its own: what one may reach, the other can't.
  const posthaste = (org: string) => new Posthaste({ url: `http://127.0.0.1:${port}`, apiKey, org })
  const [shop, billing] = [posthaste("shop"), posthaste("billing")]
  const [warehouse, answers, money] = yield* Effect.promise(() =>
    Promise.all([
      shop.webhookEndpoints.create({ url: `http://127.0.0.1:${warehousePort}/parcels` }),
      billing.webhookEndpoints.create({ url: `http://127.0.0.1:${shopPort}/payments` }),
      shop.amqpTargets.create({ url: amqpUrl, exchange: "orders", routingKey: "payment.wanted" })
    ])
  )

  const here = (file: string) => join(import.meta.dirname, file)
  const common = { DATABASE_URL: databaseUrl, AMQP_URL: amqpUrl }
  const billingSaid = yield* service("billing", here("billing.ts"), { ...common, SHOP_ENDPOINT: answers.id }, isOpen)
  const warehouseEnv = { PORT: String(warehousePort), WEBHOOK_SECRET: warehouse.secret ?? "" }
  yield* service("warehouse", here("warehouse.ts"), { ...common, ...warehouseEnv }, isOpen)
  const targets = { BILLING_TARGET: money.id, WAREHOUSE_ENDPOINT: warehouse.id }
  const shopEnv = { PORT: String(shopPort), WEBHOOK_SECRET: answers.secret ?? "", ...targets }
  yield* service("shop", here("shop.ts"), { ...common, ...shopEnv }, isOpen)

  const place = (item: string, amount: number, messages: number) =>
    Effect.gen(function* () {
      const id = randomUUID()
      yield* say(`Order ${id}: ${item} for ${amount}`)
      const request = { method: "POST", body: JSON.stringify({ id, item, amount }) }
      const { status, lastError } = yield* Effect.promise(async () => {
        const response = await fetch(`http://127.0.0.1:${shopPort}/orders`, request)
        return (await response.json()) as { status: string; lastError: string | null }
      })
      yield* Console.log(`  the shop answers ${status}${lastError === null ? "" : `: ${lastError}`}`)
      const sent = yield* Effect.promise(() => delivered([shop, billing], id, messages))
      yield* Console.log(`  its ${sent.length} messages:`)
      for (const { client, message } of sent) {
        const { items } = yield* Effect.promise(() => client.messages.events(message.id))
        const began = Date.parse(items[0]!.at)
        const way = items.map(({ status, at }) => `${status} ${Date.parse(at) - began} ms`).join(" · ")
        yield* Console.log(`    ${message.id} ${message.orgId} ${message.channel} ${message.eventType}: ${way}`)
      }
      return sent
    })

  const paid = yield* place("tea", 12.5, 3)
  yield* place("kettle", 250, 2)
  yield* place("unicorn", 1, 0)

  yield* say("The broker delivers the first message once more, under its id: billing's inbox knows it.")
  const first = paid.find(({ message }) => message.channel === "amqp")!.message
  yield* Effect.promise(() => repeat(amqpUrl, first))
  while (billingSaid.filter((line) => line === `is done with message ${first.id}`).length < 2)
    yield* Effect.sleep("20 millis")

  yield* say("What is in the services' tables:")
  yield* Effect.promise(() => showTables(databaseUrl))
  yield* say("Cleaning up …")
})

interface Sent {
  readonly client: Posthaste
  readonly message: Message
}

/** The messages of an order, in the order they were accepted, when so many of them are delivered. */
const delivered = async (
  clients: ReadonlyArray<Posthaste>,
  order: string,
  count: number
): Promise<ReadonlyArray<Sent>> => {
  for (;;) {
    const sent: Array<Sent> = []
    for (const client of clients) {
      for await (const message of client.messages.list({ correlationId: order })) sent.push({ client, message })
    }
    if (sent.filter(({ message }) => message.status === "DELIVERED").length === count) {
      return sent.toSorted((a, b) => (a.message.createdAt < b.message.createdAt ? -1 : 1))
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const repeat = async (amqpUrl: string, { id, correlationId }: Message) => {
  const connection = new Connection(amqpUrl)
  const publisher = connection.createPublisher({ confirm: true })
  const to = { exchange: "orders", routingKey: "payment.wanted", messageId: id, durable: true }
  await publisher.send(to, { order: correlationId, amount: 12.5 })
  await publisher.close()
  await connection.close()
}

const showTables = async (databaseUrl: string) => {
  const { default: pg } = await import("pg")
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  for (const [what, text] of [
    ["orders", "select item || ' ' || status as row from shop.placed order by item"],
    ["stock", "select item || ' ' || available as row from shop.stock order by item"],
    ["charges", "select amount::text as row from billing.charge"],
    ["parcels", "select item as row from warehouse.parcel"]
  ] as const) {
    const { rows } = await client.query<{ row: string }>(text)
    console.log(`  ${what.padEnd(10)} ${rows.map(({ row }) => row).join(", ")}`)
  }
  await client.end()
}

const report = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(startupErrorOf(cause))

NodeRuntime.runMain(Effect.tapCause(Effect.scoped(example), report), { disableErrorReporting: true })
