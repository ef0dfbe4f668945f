/**
 * (f) What one claim of 500 costs with few and with many messages waiting: the real schema, the function the queue
 * calls, the backlog in one lane and spread over a hundred.
 *
 * The backlog is copied by SQL from one message accepted over HTTP. It is measured twice: with statistics that still
 * describe the almost empty tables (autovacuum is kept away), which is when planners go astray, and after ANALYZE.
 * Every claim is rolled back, so all of them see the same backlog.
 */
import pg from "pg"
import { query } from "./databases.ts"
import type { Course } from "./deliveries.ts"
import { fill, openAccount, startPosthaste } from "./posthaste.ts"
import { median, percentile } from "./statistics.ts"

export interface ClaimTime {
  readonly waiting: number
  readonly lanes: number
  readonly statistics: "stale" | "fresh"
  readonly medianMs: number
  readonly p95Ms: number
}

const claimSize = 500
const claims = 100
const leaseMs = 60_000
const tables = ["event", "body", "ready", "lane", "claim"]

export const measureClaims = async (
  { databases, sinkUrl, bytes }: Course,
  shape: { readonly waiting: number; readonly lanes: number }
): Promise<ReadonlyArray<ClaimTime>> => {
  const databaseUrl = await databases.create("claims")
  const api = await startPosthaste({ databaseUrl, roles: "api" })
  const account = await openAccount(api.url, sinkUrl)
  const [original] = await fill(api.url, account, { count: 1, bytes })
  await api.stop()
  await query(databaseUrl, ...tables.map((table) => `alter table posthaste.${table} set (autovacuum_enabled = off)`))
  await query(databaseUrl, "analyze", ...backlog(original!, shape), "checkpoint")
  const stale = await timeClaims(databaseUrl)
  await query(databaseUrl, "vacuum analyze", "checkpoint")
  const fresh = await timeClaims(databaseUrl)
  await databases.drop("claims")
  return [
    { ...shape, statistics: "stale", medianMs: median(stale), p95Ms: percentile(stale, 95) },
    { ...shape, statistics: "fresh", medianMs: median(fresh), p95Ms: percentile(fresh, 95) }
  ]
}

/** `waiting` copies of a message, due one after the other within the last hour, under ids in that order. */
const backlog = (
  original: string,
  { waiting, lanes }: { readonly waiting: number; readonly lanes: number }
): ReadonlyArray<string> => {
  const copies = `generate_series(1, ${waiting}) n`
  const id = "('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid"
  const lane = `('01910000-0000-7000-8000-' || lpad(to_hex(n % ${lanes}), 12, '0'))::uuid`
  const due = `now() - interval '1 hour' + n * (interval '50 minutes' / ${waiting})`
  return [
    `insert into posthaste.event (stream_id, tx, at, version, name, data)
       select ${id}, pg_current_xact_id()::text::bigint, at, version, name, data
       from posthaste.event, ${copies} where stream_id = '${original}' and version = 1`,
    `insert into posthaste.message (id, org_id, channel, destination, recipient, accepted_at, data, body)
       select ${id}, org_id, channel, destination, recipient, accepted_at, data, body
       from posthaste.message, ${copies} where id = '${original}'`,
    `insert into posthaste.ready (lane, due_at, message_id, version, epoch, attempt)
       select ${lane}, ${due}, ${id}, version, epoch, attempt
       from posthaste.ready, ${copies} where message_id = '${original}'`,
    // The lane of the original would take its turn, and its share of every claim.
    `delete from posthaste.ready where message_id = '${original}'`,
    "delete from posthaste.lane",
    "insert into posthaste.lane (lane, ready_at) select lane, min(due_at) from posthaste.ready group by lane"
  ]
}

const timeClaims = async (databaseUrl: string): Promise<ReadonlyArray<number>> => {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const claim = { name: "claim", text: "select * from posthaste.claim_due($1, $2, $2, '{}', '{}', $3)" }
  const times: Array<number> = []
  for (let n = 0; n < claims; n++) {
    await client.query("begin")
    const startedAt = performance.now()
    const { rows } = await client.query<{ messages: string }>({ ...claim, values: ["bench", claimSize, leaseMs] })
    times.push(performance.now() - startedAt)
    await client.query("rollback")
    const claimed = (JSON.parse(rows[0]?.messages ?? "[]") as ReadonlyArray<unknown>).length
    if (claimed !== claimSize) throw new Error(`a claim of ${claimSize} got ${claimed}`)
  }
  await client.end()
  return times
}
