/**
 * The shop. It takes an order with a saga: the goods are reserved, billing is asked for the money over RabbitMQ, and when the
 * answer has come as a webhook, the warehouse is told or the goods are put back. Every message that leaves is part of the
 * transaction that it tells of.
 */
import { createServer, type IncomingMessage } from "node:http"
import pg from "pg"
import { webhookReceiver } from "posthaste/inbox"
import { AbortSaga, saga } from "posthaste/saga"

const { DATABASE_URL, PORT, WEBHOOK_SECRET = "", BILLING_TARGET = "", WAREHOUSE_ENDPOINT = "" } = process.env

interface Order {
  readonly item: string
  readonly amount: number
}

interface Payment {
  readonly order: string
  readonly outcome: "payment.captured" | "payment.declined"
}

const pool = new pg.Pool({ connectionString: DATABASE_URL })
// A connection that breaks while nobody uses it is replaced.
pool.on("error", (error) => console.error(error.message))
await pool.query(`
  create schema if not exists shop;
  create table if not exists shop.stock (item text primary key, available int not null check (available >= 0));
  create table if not exists shop.placed (id text primary key, item text not null, status text not null);
  insert into shop.stock values ('tea', 10), ('kettle', 1), ('unicorn', 0) on conflict do nothing`)

const setStatus = (transaction: pg.PoolClient, id: string, status: string) =>
  transaction.query("update shop.placed set status = $2 where id = $1", [id, status])

const placeOrder = saga<Order, pg.PoolClient>("order", { org: "shop", table: "shop.saga" })
  .step("reserve", {
    action: async (transaction, { item }, { sagaId }) => {
      const text = "update shop.stock set available = available - 1 where item = $1 and available > 0"
      const { rowCount } = await transaction.query(text, [item])
      if (rowCount === 0) throw new AbortSaga(`no ${item} left`)
      await transaction.query("insert into shop.placed values ($1, $2, 'reserved')", [sagaId, item])
      console.log(`reserves ${item} for order ${sagaId}, and asks billing for the money`)
    },
    event: ({ amount }, _, order) => ({
      channel: "amqp",
      to: BILLING_TARGET,
      eventType: "payment.wanted",
      orderingKey: order,
      payloadJson: { order, amount }
    }),
    compensate: async (transaction, { item }, _, order) => {
      await transaction.query("update shop.stock set available = available + 1 where item = $1", [item])
      await setStatus(transaction, order, "cancelled")
      console.log(`puts ${item} of order ${order} back`)
    }
  })
  .step("pay", {
    waitsFor: ["payment.captured", "payment.declined"],
    timeoutMs: 24 * 60 * 60 * 1000,
    action: async (transaction, _, { event, sagaId }) => {
      if (event?.name === "payment.declined") throw new AbortSaga("the payment was declined")
      await setStatus(transaction, sagaId, "paid")
    }
  })
  .step("ship", {
    action: (_, { item }, { sagaId }) => console.log(`tells the warehouse to send ${item} of order ${sagaId}`),
    event: ({ item }, _, order) => ({
      channel: "webhook",
      to: WAREHOUSE_ENDPOINT,
      eventType: "order.paid",
      payloadJson: { order, item }
    })
  })

/** Billing's answer, which may come twice: the inbox takes it once, in the transaction that carries the saga on. */
const receivePayment = webhookReceiver<pg.Pool, Payment>(
  { client: pool, consumer: "shop", secret: WEBHOOK_SECRET, table: "shop.inbox" },
  async (transaction, { id, payload }) => {
    const { order, outcome } = payload
    console.log(`hears of ${outcome} for order ${order}`)
    await placeOrder.deliver(transaction, { sagaId: order, name: outcome, messageId: id, data: payload })
  }
)

const bodyOf = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const answer = async (request: IncomingMessage): Promise<{ status: number; body?: unknown }> => {
  const body = await bodyOf(request)
  switch (`${request.method} ${request.url}`) {
    case "POST /payments":
      return receivePayment(request.headers, body)
    case "POST /orders": {
      const { id, ...order } = JSON.parse(body.toString("utf8")) as Order & { id: string }
      // The same id again is the same order: the caller may repeat a request whose answer got lost.
      const { status, lastError } = await placeOrder.start(pool, order, { id })
      return { status: 202, body: { id, status, lastError } }
    }
    default:
      return { status: 404 }
  }
}

const server = createServer(async (request, response) => {
  const { status, body } = await answer(request).catch((error: Error) => {
    console.error(error.message)
    return { status: 500, body: undefined }
  })
  response.writeHead(status, { "content-type": "application/json" }).end(body === undefined ? "" : JSON.stringify(body))
})
server.listen(Number(PORT), "127.0.0.1", () => console.log("is open"))

// Goes on with what a crash left in the middle, of this process or of another.
const stopping = new AbortController()
const resuming = placeOrder.run(pool, { signal: stopping.signal, onError: (error) => console.error(error) })

process.on("SIGTERM", async () => {
  stopping.abort()
  server.close()
  server.closeAllConnections()
  await resuming
  await pool.end()
})
