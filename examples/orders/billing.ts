/**
 * Billing. It takes what the shop wants paid from a queue of RabbitMQ, charges once although a message may come twice, and
 * answers with a message of its own, which is part of the transaction that charges.
 */
import pg from "pg"
import { amqpConsumer } from "posthaste/inbox"
import { send } from "posthaste/outbox"
import { type AsyncMessage, Connection } from "rabbitmq-client"

const { DATABASE_URL, AMQP_URL, SHOP_ENDPOINT = "" } = process.env
const LIMIT = 100

const pool = new pg.Pool({ connectionString: DATABASE_URL })
// A connection that breaks while nobody uses it is replaced.
pool.on("error", (error) => console.error(error.message))
await pool.query(`
  create schema if not exists billing;
  create table if not exists billing.charge ("order" text primary key, amount numeric not null)`)

interface Wanted {
  readonly order: string
  readonly amount: number
}

const charge = amqpConsumer<pg.Pool, AsyncMessage>(
  { client: pool, consumer: "billing", table: "billing.inbox" },
  async (transaction, { body }) => {
    const { order, amount } = body as Wanted
    const outcome = amount <= LIMIT ? "payment.captured" : "payment.declined"
    if (amount <= LIMIT) await transaction.query("insert into billing.charge values ($1, $2)", [order, amount])
    await send(transaction, {
      org: "billing",
      channel: "webhook",
      to: SHOP_ENDPOINT,
      eventType: outcome,
      correlationId: order,
      payloadJson: { order, outcome }
    })
    console.log(`${amount <= LIMIT ? "charges" : "declines"} ${amount} for order ${order}`)
  }
)

const connection = new Connection(AMQP_URL)
connection.on("error", (error) => console.error(error.message))
const consumer = connection.createConsumer(
  {
    queue: "billing",
    queueOptions: { durable: true, arguments: { "x-queue-type": "quorum" } },
    exchanges: [{ exchange: "orders", type: "topic", durable: true }],
    queueBindings: [{ exchange: "orders", routingKey: "payment.wanted" }],
    qos: { prefetchCount: 20 }
  },
  async (message) => {
    // What fails goes back to the queue; the broker's delivery limit, or a dead-letter exchange, would end that.
    await charge(message)
    console.log(`is done with message ${message.messageId}`)
  }
)
consumer.on("ready", () => console.log("is open"))

process.on("SIGTERM", async () => {
  await consumer.close()
  await connection.close()
  await pool.end()
})
