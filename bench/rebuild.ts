/**
 * `npx node bench/rebuild.ts`: every projection built anew from a log of a million facts while 200 messages a second are
 * accepted. It prints facts per second, what that does to the latency of an accept, and fails when a row differs.
 *
 * `--facts N` another size · `--apart` the projector in a process of its own · `--cpu-prof DIR` profiles the projector
 */
import { setTimeout as sleep } from "node:timers/promises"
import { on, scriptFlags, text, whole } from "../test/servers/scriptFlags.ts"
import type { Client, Sent } from "./client.ts"
import { cpuSeconds } from "./cpuTime.ts"
import { type Databases, openDatabases, query, settle } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { type Account, openAccount, operatorCall, startPosthaste } from "./posthaste.ts"
import { type Remote, startRemote } from "./remote.ts"
import { percentile } from "./statistics.ts"

const asked = scriptFlags({ facts: whole(1_000_000), apart: on, "cpu-prof": text("a directory", null) })

/** The log is of messages long gone, which nobody shall forget while they are counted. */
const settings = { POSTHASTE_RETENTION_DAYS: "0" }

const perSecond = 200
const bytes = 300
const idleSeconds = 20

/** Messages as they pass a busy worker: in batches of 500, most delivered at once, every seventh after one failure. */
const fillLog = async (url: string, { endpoints }: Account, facts: number): Promise<void> => {
  const queued = `json_build_object('orgId', 'bench', 'channel', 'webhook', 'to', '${endpoints[0]}', 'destination', '${endpoints[0]}',
    'eventType', 'invoice.paid', 'templateCode', null, 'dossierId', 'dossier-' || (m % 1000), 'orderingKey', null,
    'correlationId', 'c-' || m, 'metadata', null, 'retry', json_build_object('strategy', 'fixed', 'baseMs', 1000),
    'acceptedAt', '2026-01-01T00:00:00.000Z', 'dueAt', '2026-01-01T00:00:00.000Z', 'expiresAt', null)`
  const chunk = 10_000
  // Four facts, and two more of every seventh.
  const messages = Math.round((facts * 7) / 30)
  for (let from = 0; from < messages; from += chunk) {
    await query(
      url,
      `insert into posthaste.event (stream_id, tx, position, at, version, name, data)
        select ('00000000-0000-7000-8000-' || lpad(to_hex(m), 12, '0'))::uuid, pg_current_xact_id()::text::bigint,
          nextval('posthaste.event_position'), '2026-01-01'::timestamptz + m * interval '1 millisecond', version, name, data
        from (
          select m, f.version, f.name, f.data from generate_series(${from}, ${Math.min(messages, from + chunk) - 1}) m
          cross join lateral (
            select 1, 0, 'MessageQueued@1', ${queued}
            union all select 2, 1, 'AttemptStarted@1', '{"epoch":1,"attempt":1}'::json
            union all select 3, 2, 'AttemptFailed@1', '{"attempt":1,"error":{"code":"http_503","message":"answered 503","retryable":true},"status":503,"durationMs":3,"retryAt":"2026-01-01T00:00:01.000Z"}'::json where m % 7 = 0
            union all select 4, 5, 'AttemptStarted@1', '{"epoch":1,"attempt":2}'::json where m % 7 = 0
            union all select case when m % 7 = 0 then 5 else 3 end, case when m % 7 = 0 then 6 else 3 end, 'AttemptSucceeded@1',
              json_build_object('attempt', case when m % 7 = 0 then 2 else 1 end, 'status', 200, 'providerMessageId', null, 'durationMs', 3)
            union all select case when m % 7 = 0 then 6 else 4 end, case when m % 7 = 0 then 7 else 4 end, 'MessageDelivered@1', '{"proof":"response"}'::json
          ) f(version, phase, name, data)
          order by m / 500, f.phase, m
        ) facts`
    )
  }
}

/** Of all rows that were there before. */
const fingerprint = async (url: string, before: string): Promise<string> => {
  const [row] = await query<{ print: string }>(
    url,
    `select count(*) || ' ' || md5(string_agg(md5((to_jsonb(v) - 'generation')::text), '' order by v.id)) as print
      from posthaste.message_view v join posthaste.projection p on p.name = 'messages' and p.live and p.generation = v.generation
      where v.created_at < '${before}'`
  )
  return row!.print
}

const countsDiffer = async (url: string): Promise<number> => {
  const [row] = await query<{ differ: number }>(
    url,
    `select count(*)::int as differ from (
      select generation, org_id, channel, status, count(*) from posthaste.message_view
        where generation = (select generation from posthaste.projection where name = 'messages' and live) group by 1, 2, 3, 4
      except select generation, org_id, channel, status, count from posthaste.message_count
    ) d`
  )
  return row!.differ
}

interface Projection {
  readonly name: string
  readonly live: { readonly generation: number; readonly facts: number } | null
  readonly build: { readonly facts: number } | null
}

const projectionsOf = async (url: string): Promise<ReadonlyArray<Projection>> =>
  (await operatorCall<{ items: ReadonlyArray<Projection> }>("GET", `${url}/api/v1/projections`)).items

const until = async (what: string, withinMs: number, holds: () => Promise<boolean>): Promise<number> => {
  const startedAt = monotonicNow()
  while (!(await holds())) {
    if (monotonicNow() - startedAt > withinMs) throw new Error(`${what} took longer than ${withinMs / 1000} s`)
    await sleep(100)
  }
  return monotonicNow() - startedAt
}

const latencies = (sent: ReadonlyMap<string, Sent>) => {
  const all = [...sent.values()].map(({ scheduledAt, acceptedAt }) => acceptedAt - scheduledAt)
  return { count: all.length, p50: percentile(all, 50), p99: percentile(all, 99), max: percentile(all, 100) }
}

const measure = async (databases: Databases, facts: number) => {
  const databaseUrl = await databases.create("rebuild")
  const profile = asked["cpu-prof"]
  const execArgv = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]
  const first = await startPosthaste({ databaseUrl, roles: "api" })
  const account = await openAccount(first.url, "http://127.0.0.1:9/")
  await first.stop()
  await fillLog(databaseUrl, account, facts)
  await settle(databaseUrl)

  const api = await startPosthaste({
    databaseUrl,
    roles: asked.apart ? "api" : "api,projector",
    settings,
    execArgv: asked.apart ? [] : execArgv
  })
  const projector = asked.apart ? await startPosthaste({ databaseUrl, roles: "projector", settings, execArgv }) : null
  const client: Remote<Client> = startRemote<Client>("client.ts")
  const load = (seconds: number) =>
    client.ask("openLoop", { url: api.url, account: { ...account }, bytes, perSecond, seconds })

  const total = Number((await query<{ n: string }>(databaseUrl, "select count(*) as n from posthaste.event"))[0]!.n)
  const firstMs = await until("the first projecting", 600_000, async () =>
    (await projectionsOf(api.url)).every(({ live }) => (live?.facts ?? 0) >= total)
  )
  await settle(databaseUrl)
  await load(5)
  const idle = latencies(await load(idleSeconds))
  const before = new Date().toISOString()
  await sleep(1000)
  const rowsBefore = await fingerprint(databaseUrl, before)

  const generations = new Map((await projectionsOf(api.url)).map(({ name, live }) => [name, live!.generation]))
  const seconds = Math.ceil(total / 30_000) + 5
  const loaded = load(seconds)
  const cpu = async () => ({ node: cpuSeconds((projector ?? api).pid), postgres: await databases.cpuSeconds() })
  const cpuBefore = await cpu()
  const startedAt = monotonicNow()
  for (const name of generations.keys()) await operatorCall("POST", `${api.url}/api/v1/projections/${name}/rebuild`)
  const swapped = new Map<string, number>()
  await until("the rebuild", 600_000, async () => {
    for (const { name, live } of await projectionsOf(api.url)) {
      if (live!.generation !== generations.get(name) && !swapped.has(name))
        swapped.set(name, monotonicNow() - startedAt)
    }
    return swapped.size === generations.size
  })
  const cpuAfter = await cpu()
  const used = (of: "node" | "postgres") =>
    cpuBefore[of] === null || cpuAfter[of] === null ? null : cpuAfter[of] - cpuBefore[of]
  const rebuildMs = Math.max(...swapped.values())
  const busy = latencies(
    new Map([...(await loaded)].filter(([, { scheduledAt }]) => scheduledAt < startedAt + rebuildMs))
  )
  const rowsAfter = await fingerprint(databaseUrl, before)
  const differ = await countsDiffer(databaseUrl)
  await client.stop()
  await projector?.stop()
  await api.stop()
  await databases.drop("rebuild")
  return {
    total,
    firstMs,
    rebuildMs,
    idle,
    busy,
    swapped,
    identical: rowsBefore === rowsAfter && differ === 0,
    rows: rowsAfter,
    nodeCpu: used("node"),
    postgresCpu: used("postgres")
  }
}

const databases = await openDatabases()
try {
  const { total, firstMs, rebuildMs, idle, busy, swapped, identical, rows, nodeCpu, postgresCpu } = await measure(
    databases,
    asked.facts
  )
  const each = (seconds: number | null) => (seconds === null ? "?" : ((seconds * 1e6) / total).toFixed(1))
  const ms = (value: number) => `${value.toFixed(1)} ms`
  console.log(`facts in the log                       ${total}`)
  console.log(`first projecting, nothing else going on ${Math.round((total * 1000) / firstMs)} facts/s`)
  console.log(
    `rebuilt under ${perSecond} accepts/s            ${Math.round((total * 1000) / rebuildMs)} facts/s (${(rebuildMs / 1000).toFixed(1)} s; ${[...swapped].map(([name, after]) => `${name} ${(after / 1000).toFixed(1)} s`).join(", ")})`
  )
  console.log(
    `CPU µs a fact meanwhile                ${each(nodeCpu)} in the process that projects, ${each(postgresCpu)} in PostgreSQL (accepts included)`
  )
  console.log(
    `an accept while idle                   p50 ${ms(idle.p50)}, p99 ${ms(idle.p99)}, max ${ms(idle.max)} (${idle.count})`
  )
  console.log(
    `an accept during the rebuild           p50 ${ms(busy.p50)}, p99 ${ms(busy.p99)}, max ${ms(busy.max)} (${busy.count}): p99 × ${(busy.p99 / idle.p99).toFixed(1)}`
  )
  console.log(`rows identical                         ${identical ? "yes" : "NO"} (${rows})`)
  if (!identical) process.exitCode = 1
} finally {
  await databases.close()
}
