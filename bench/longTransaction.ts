/**
 * `npx node bench/longTransaction.ts`: what a transaction that somebody holds open elsewhere costs the queue. A steady load; first alone,
 * then beside a transaction in `repeatable read` that looked once, then alone again. Prints for each stretch PostgreSQL's CPU and the
 * blocks of the queue's tables that a message touched, and how long a claim took.
 *
 *   --perSecond 500   messages
 *   --hold 180        for how many seconds the transaction is open
 *   --stretch 20      seconds of a line
 */
import { setTimeout as sleep } from "node:timers/promises"
import pg from "pg"
import { Pool } from "undici"
import { scriptFlags, whole } from "../test/servers/scriptFlags.ts"
import { openDatabases, query } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { messageRequest, openAccount, operatorText, startPosthaste } from "./posthaste.ts"
import { startRemote } from "./remote.ts"
import type { Sink } from "./sink.ts"

const {
  perSecond,
  hold: holdSeconds,
  stretch: stretchSeconds
} = scriptFlags({ perSecond: whole(500), hold: whole(180), stretch: whole(20) })
const BYTES = 300
const BATCH = 25
const queueTables = ["ready", "lane", "claim"]

interface Sample {
  readonly accepted: number
  readonly postgresCpu: number
  readonly blocks: ReadonlyMap<string, number>
  readonly claims: number
  readonly claimSeconds: number
  readonly dead: number
}

const say = (line: string) => void process.stdout.write(`${line}\n`)
const databases = await openDatabases()
const sink = startRemote<Sink>("sink.ts")
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void databases.close().finally(() => process.exit(130)))
try {
  const sinkUrl = await sink.ask("listen", { reply: "", bytes: BYTES })
  const databaseUrl = await databases.create("long_transaction")
  const service = await startPosthaste({ databaseUrl })
  const account = await openAccount(service.url, sinkUrl)
  const pool = new Pool(service.url, { connections: 16 })
  let accepted = 0
  const send = async (n: number) => {
    const requests = Array.from({ length: BATCH }, (_, each) => messageRequest(account, n + each, BYTES))
    const { statusCode, body } = await pool.request({
      path: "/api/v1/outbound/messages/batch",
      method: "POST",
      headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
      body: `{"messages":[${requests.join()}]}`
    })
    await body.text()
    if (statusCode === 200) accepted += BATCH
  }

  let isLoading = true
  const load = async () => {
    const began = monotonicNow()
    const underway = new Set<Promise<void>>()
    for (let sent = 0; isLoading; ) {
      if (sent < ((monotonicNow() - began) / 1_000) * perSecond && underway.size < 16) {
        const sending = send(sent).finally(() => underway.delete(sending))
        underway.add(sending)
        sent += BATCH
      } else await sleep(2)
    }
    await Promise.all(underway)
  }

  const sample = async (): Promise<Sample> => {
    const rows = await query<{ name: string; blocks: string; dead: string }>(
      databaseUrl,
      `select relname as name, n_dead_tup as dead,
          coalesce(heap_blks_read, 0) + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0) as blocks
        from pg_statio_user_tables join pg_stat_user_tables using (relid, relname)
        where pg_stat_user_tables.schemaname = 'posthaste'`
    )
    const metrics = await operatorText("GET", `${service.url}/metrics`)
    const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1] ?? 0)
    return {
      accepted,
      postgresCpu: (await databases.cpuSeconds()) ?? 0,
      blocks: new Map(rows.map(({ name, blocks }) => [name, Number(blocks)])),
      claims: figure("posthaste_claim_duration_seconds_count"),
      claimSeconds: figure("posthaste_claim_duration_seconds_sum"),
      dead: rows.reduce((sum, { dead }) => sum + Number(dead), 0)
    }
  }

  const loaded = load()
  await sleep(5_000)
  say(
    `${"stretch".padEnd(16)}     msg/s   µs PostgreSQL/msg   ${queueTables.map((name) => `${name} blocks/msg`).join("   ")}   other blocks/msg   ms/claim      dead`
  )
  const stretch = async (name: string) => {
    const before = await sample()
    await sleep(stretchSeconds * 1_000)
    const after = await sample()
    const messages = Math.max(1, after.accepted - before.accepted)
    const blocks = queueTables.map((table) =>
      (((after.blocks.get(table) ?? 0) - (before.blocks.get(table) ?? 0)) / messages)
        .toFixed(2)
        .padStart(`${table} blocks/msg`.length)
    )
    const elsewhere = (sample: Sample) =>
      [...sample.blocks].reduce((sum, [table, blocks]) => (queueTables.includes(table) ? sum : sum + blocks), 0)
    blocks.push(((elsewhere(after) - elsewhere(before)) / messages).toFixed(1).padStart("other blocks/msg".length))
    const claim = ((after.claimSeconds - before.claimSeconds) / Math.max(1, after.claims - before.claims)) * 1e3
    say(
      `${name.padEnd(16)}${String(Math.round(messages / stretchSeconds)).padStart(10)}` +
        `${(((after.postgresCpu - before.postgresCpu) / messages) * 1e6).toFixed(0).padStart(20)}   ${blocks.join("   ")}` +
        `${claim.toFixed(2).padStart(11)}${String(after.dead).padStart(10)}`
    )
  }
  await stretch("before")
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "a long look" })
  await client.connect()
  await client.query("begin isolation level repeatable read")
  await client.query("select 1 from posthaste.lane limit 1")
  for (let held = stretchSeconds; held <= holdSeconds; held += stretchSeconds) await stretch(`held for ${held} s`)
  await client.end()
  await sleep(5_000)
  await stretch("after")
  isLoading = false
  await loaded
  await pool.close()
  const arrived = await sink.ask("arrived", { count: accepted, patienceMs: 60_000 })
  say(arrived ? `all ${accepted} arrived` : "NOT ALL ARRIVED")
  if (!arrived) process.exitCode = 1
  await service.stop()
} finally {
  await sink.stop()
  await databases.close()
}
