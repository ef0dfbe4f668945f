/**
 * `npx node bench/commands.ts`: commands that come in by other ways than HTTP.
 *
 *   amqp  how many single messages a second are accepted from RabbitMQ: eight publishers, each waiting for its confirms, one
 *         process with the role `relay`. The broker is the one on this machine, or the one `AMQP_URL` names.
 *   sql   what `posthaste.send` costs its caller: eight callers in transactions of their own, a fifth rolled back, one held
 *         open all the time. In turns with the same insert into a plain table, which then has the machine to itself, while the
 *         relay beside `send` accepts as fast as it is called; and mixed, every other transaction a plain insert, so that both
 *         have the same neighbours
 *
 *   --only amqp   one of the two
 *   --messages 40000
 *   --seconds 10
 *   --rate 5000   how many transactions a second callers begin; 0: as many as they can
 *
 * It fails when a message was lost or doubled.
 */
import { Effect, Exit, Scope } from "effect"
import pg from "pg"
import { Connection } from "rabbitmq-client"
import { rabbitmq } from "../test/servers/rabbitmq.ts"
import { number, scriptFlags, someOf, whole } from "../test/servers/scriptFlags.ts"
import { openDatabases, query } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { openAccount, startPosthaste } from "./posthaste.ts"

const given = scriptFlags({
  only: someOf(["amqp", "sql"]),
  messages: whole(40_000),
  seconds: number(10),
  rate: whole(5_000, [0, 1_000_000])
})
const parts = new Set(given.only)
const PUBLISHERS = 8
const UNCONFIRMED = 64
const CALLERS = 8

const databases = await openDatabases()
const acceptedIn = async (url: string): Promise<{ readonly n: number; readonly keys: number }> => {
  const [row] = await query<{ n: number; keys: number }>(
    url,
    "select count(*)::int as n, count(distinct correlation_id)::int as keys from posthaste.message"
  )
  return row!
}

const untilAccepted = async (url: string, count: number) => {
  for (;;) {
    const found = await acceptedIn(url)
    if (found.n >= count) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const requestOf = (to: string, id: string) =>
  JSON.stringify({
    channel: "webhook",
    to,
    eventType: "a.b",
    correlationId: id,
    payloadJson: { text: "x".repeat(200) }
  })

const amqp = async () => {
  const count = given.messages
  const scope = Scope.makeUnsafe()
  const broker = await Effect.runPromise(Scope.provide(rabbitmq, scope))
  const databaseUrl = await databases.create("amqp")
  const api = await startPosthaste({ databaseUrl, roles: "api" })
  const account = await openAccount(api.url, "http://127.0.0.1:9")
  await api.stop()
  const relay = await startPosthaste({ databaseUrl, roles: "api,relay", settings: { AMQP_URL: broker.url } })
  const [org] = await query<{ id: string }>(databaseUrl, "select org_id as id from posthaste.destination limit 1")
  const began = monotonicNow()
  await Promise.all(
    Array.from({ length: PUBLISHERS }, async (_, publisher) => {
      const connection = new Connection({ url: broker.url })
      const out = connection.createPublisher({ confirm: true })
      let next = publisher
      const publish = async () => {
        for (; next < count; ) {
          const id = String(next)
          next += PUBLISHERS
          await out.send(
            {
              routingKey: "posthaste.commands",
              durable: true,
              messageId: id,
              type: "SendMessage",
              contentType: "application/json",
              headers: { "x-org-id": org!.id }
            },
            Buffer.from(requestOf(account.endpoints[0]!, id))
          )
        }
      }
      await Promise.all(Array.from({ length: UNCONFIRMED }, publish))
      await out.close()
      await connection.close()
    })
  )
  const published = monotonicNow()
  const found = await untilAccepted(databaseUrl, count)
  const ended = monotonicNow()
  await relay.stop()
  await databases.drop("amqp")
  await Effect.runPromise(Scope.close(scope, Exit.void))
  const perSecond = (ms: number) => Math.round((count * 1000) / ms)
  console.log(
    `amqp: ${count} commands by ${PUBLISHERS} publishers; confirmed ${perSecond(published - began)}/s, accepted ${perSecond(ended - began)}/s from the first publish to the last commit`
  )
  return found.n === count && found.keys === count
}

const percentile = (sorted: ReadonlyArray<number>, p: number) =>
  sorted[Math.floor((sorted.length - 1) * p)] ?? Number.NaN

interface Called {
  readonly statement: string
  readonly requestAt: (n: number) => string
}

/** Callers for as long as it takes, each transaction the next of `calls`; answers of each how long its transactions took, and how many were committed. */
const callers = async (url: string, calls: ReadonlyArray<Called>) => {
  const rate = given.rate
  const measured = calls.map(() => ({ durations: [] as Array<number>, committed: 0 }))
  const began = monotonicNow()
  const until = began + given.seconds * 1000
  let begun = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      for (;;) {
        const n = begun++
        const due = rate === 0 ? 0 : began + (n * 1000) / rate
        if (monotonicNow() >= until) break
        while (monotonicNow() < due) await new Promise((resolve) => setTimeout(resolve, 1))
        const which = n % calls.length
        const { statement, requestAt } = calls[which]!
        const start = monotonicNow()
        await client.query("begin")
        await client.query({ name: `bench ${which}`, text: statement, values: [requestAt(n)] })
        const isKept = n % 5 !== 0
        await client.query(isKept ? "commit" : "rollback")
        measured[which]!.durations.push(monotonicNow() - start)
        if (isKept) measured[which]!.committed++
      }
      await client.end()
    })
  )
  const seconds = (monotonicNow() - began) / 1000
  return measured.map(({ durations, committed }) => {
    const sorted = durations.toSorted((a, b) => a - b)
    const perSecond = Math.round(durations.length / seconds)
    return { committed, perSecond, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
  })
}

const sql = async () => {
  const databaseUrl = await databases.create("sql")
  const api = await startPosthaste({ databaseUrl, roles: "api" })
  const account = await openAccount(api.url, "http://127.0.0.1:9")
  await api.stop()
  const [org] = await query<{ id: string }>(databaseUrl, "select org_id as id from posthaste.destination limit 1")
  await query(
    databaseUrl,
    "create table plain (id uuid primary key default gen_random_uuid(), n bigserial, org text, request jsonb)"
  )
  const relay = await startPosthaste({ databaseUrl, roles: "api,relay" })
  const open = new pg.Client({ connectionString: databaseUrl })
  await open.connect()
  await open.query("begin")
  await open.query("select posthaste.send($1, $2)", [org!.id, requestOf(account.endpoints[0]!, "open")])
  const endpoint = account.endpoints[0]!
  const plain: Called = {
    statement: `insert into plain (org, request) values ('${org!.id}', $1)`,
    requestAt: (n) => requestOf(endpoint, String(n))
  }
  let kept = 0
  let runs = 0
  const inARun = async (isMixed: boolean) => {
    const run = ++runs
    const send: Called = {
      statement: `select posthaste.send('${org!.id}', $1)`,
      requestAt: (n) => requestOf(endpoint, `${run}-${n}`)
    }
    const [alone] = isMixed ? [] : await callers(databaseUrl, [plain])
    const together = await callers(databaseUrl, isMixed ? [plain, send] : [send])
    const sent = together.at(-1)!
    kept += sent.committed
    const ended = monotonicNow()
    await untilAccepted(databaseUrl, kept)
    return { inserted: alone ?? together[0]!, sent, behindMs: Math.round(monotonicNow() - ended) }
  }
  for (const isMixed of [false, true]) {
    const ratios: Array<string> = []
    const how = isMixed ? "mixed" : "in turns"
    for (let round = 1; round <= 3; round++) {
      const { inserted, sent, behindMs } = await inARun(isMixed)
      ratios.push((sent.p99 / inserted.p99).toFixed(2))
      const shown = ({ perSecond, p50, p99 }: typeof sent) =>
        `${perSecond}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
      console.log(
        `sql, ${how}: plain ${shown(inserted)}; posthaste.send ${shown(sent)}; all accepted ${behindMs} ms after the last commit`
      )
    }
    console.log(`sql, ${how}: p99 of posthaste.send over p99 of a plain insert: ${ratios.join(", ")}`)
  }
  const found = await acceptedIn(databaseUrl)
  await open.query("commit")
  await open.end()
  await untilAccepted(databaseUrl, kept + 1)
  await relay.stop()
  await databases.drop("sql")
  return found.n === kept && found.keys === kept
}

let isSound = true
try {
  if (parts.has("amqp")) isSound &&= await amqp()
  if (parts.has("sql")) isSound &&= await sql()
} finally {
  await databases.close()
}
if (!isSound) {
  console.error("messages were lost or doubled")
  process.exitCode = 1
}
