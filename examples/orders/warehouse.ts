/** The warehouse. It receives webhooks, believes those that Posthaste signed, and packs each order once. */
import { createServer } from "node:http"
import pg from "pg"
import { webhookReceiver } from "posthaste/inbox"

const { DATABASE_URL, PORT, WEBHOOK_SECRET = "" } = process.env

const pool = new pg.Pool({ connectionString: DATABASE_URL })
// A connection that breaks while nobody uses it is replaced.
pool.on("error", (error) => console.error(error.message))
await pool.query(`
  create schema if not exists warehouse;
  create table if not exists warehouse.parcel ("order" text primary key, item text not null)`)

const pack = webhookReceiver<pg.Pool, { readonly order: string; readonly item: string }>(
  { client: pool, consumer: "warehouse", secret: WEBHOOK_SECRET, table: "warehouse.inbox" },
  async (transaction, { payload: { order, item } }) => {
    await transaction.query("insert into warehouse.parcel values ($1, $2)", [order, item])
    console.log(`packs ${item} for order ${order}`)
  }
)

const server = createServer(async (request, response) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { status } = await pack(request.headers, Buffer.concat(chunks)).catch((error: Error) => {
    console.error(error.message)
    return { status: 500 }
  })
  response.writeHead(status).end()
})
server.listen(Number(PORT), "127.0.0.1", () => console.log("is open"))

process.on("SIGTERM", async () => {
  server.close()
  server.closeAllConnections()
  await pool.end()
})
