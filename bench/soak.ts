/**
 * `npm run soak`: a steady load on Posthaste in all its roles, with a retention of minutes, so that messages are forgotten as fast as
 * they come. It prints, at intervals, what may not grow: the sizes of tables, the time of a claim, the CPU a message. It ends with 1 when
 * a message was lost, or when a size or a cost of the last third is far above that of the second third.
 *
 *   --minutes 10       how long
 *   --perSecond 1000   messages
 *   --keep 1           for how many minutes messages are kept that ended well
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Pool } from "undici"
import { number, scriptFlags, whole } from "../test/servers/scriptFlags.ts"
import { cpuSeconds } from "./cpuTime.ts"
import { openDatabases, query } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { messageRequest, openAccount, operatorText, startPosthaste } from "./posthaste.ts"
import { startRemote } from "./remote.ts"
import type { Sink } from "./sink.ts"

const {
  minutes,
  perSecond,
  keep: keepMinutes
} = scriptFlags({ minutes: number(10, [0.1, 10_000]), perSecond: whole(1_000), keep: number(1, [0.1, 10_000]) })
const BYTES = 300
const BATCH = 100
const SAMPLES = 12
/** What may differ between two thirds of a run on a machine that does other things too. */
const FLAT = 1.5
const SMALL_BYTES = 32 * 2 ** 20

const say = (line: string) => void process.stdout.write(`${line}\n`)

interface Sample {
  readonly atSeconds: number
  readonly accepted: number
  readonly bytes: ReadonlyMap<string, number>
  readonly cpu: number
  readonly postgresCpu: number
  readonly claims: number
  readonly claimSeconds: number
  /** How far the list is behind the facts: what it does not know can't be forgotten. */
  readonly lagSeconds: number
}

const databases = await openDatabases()
const sink = startRemote<Sink>("sink.ts")
try {
  const sinkUrl = await sink.ask("listen", { reply: "", bytes: BYTES })
  const databaseUrl = await databases.create("soak")
  const service = await startPosthaste({
    databaseUrl,
    settings: { POSTHASTE_RETENTION_DAYS: (keepMinutes / 1_440).toFixed(6), POSTHASTE_DEAD_LETTER_DAYS: "1" }
  })
  const account = await openAccount(service.url, sinkUrl)
  const pool = new Pool(service.url, { connections: 16 })
  let accepted = 0
  let refused = 0

  const send = async (n: number) => {
    const requests = Array.from({ length: BATCH }, (_, each) => messageRequest(account, n + each, BYTES))
    const { statusCode, body } = await pool.request({
      path: "/api/v1/outbound/messages/batch",
      method: "POST",
      headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
      body: `{"messages":[${requests.join()}]}`
    })
    const text = await body.text()
    const items = statusCode === 200 ? (JSON.parse(text) as { items: ReadonlyArray<{ status: number }> }).items : []
    accepted += items.filter(({ status }) => status === 201).length
    refused += BATCH - items.filter(({ status }) => status === 201).length
  }

  const figure = (metrics: string, name: string): number =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].reduce(
      (sum, [, n]) => sum + Number(n),
      0
    )

  const sample = async (atSeconds: number): Promise<Sample> => {
    const rows = await query<{ name: string; bytes: string }>(
      databaseUrl,
      `select relname as name, pg_total_relation_size(oid) as bytes from pg_class
        where relnamespace = 'posthaste'::regnamespace and relkind = 'r' order by relname`
    )
    const metrics = await operatorText("GET", `${service.url}/metrics`)
    return {
      atSeconds,
      accepted,
      bytes: new Map(rows.map(({ name, bytes }) => [name, Number(bytes)])),
      cpu: cpuSeconds(service.pid) ?? 0,
      postgresCpu: (await databases.cpuSeconds()) ?? 0,
      claims: figure(metrics, "posthaste_claim_duration_seconds_count"),
      claimSeconds: figure(metrics, "posthaste_claim_duration_seconds_sum"),
      lagSeconds: Number(/^posthaste_projection_lag_seconds\{projection="messages"\} (\S+)$/m.exec(metrics)?.[1] ?? 0)
    }
  }

  const samples: Array<Sample> = []
  const began = monotonicNow()
  const passed = () => (monotonicNow() - began) / 1_000
  const lastsSeconds = minutes * 60
  say(
    "   s   accepted   MiB in all   event MiB   view MiB   µs CPU/message   µs PostgreSQL/message   ms/claim   list behind, s"
  )
  const underway = new Set<Promise<void>>()
  let sent = 0
  while (passed() < lastsSeconds) {
    if (passed() >= (samples.length * lastsSeconds) / SAMPLES) {
      const now = await sample(passed())
      const before = samples.at(-1)
      samples.push(now)
      if (before !== undefined) say(lineOf(before, now))
    }
    // What is late is sent at once, up to what the connections carry.
    if (sent < passed() * perSecond && underway.size < 32) {
      const sending = send(sent).finally(() => underway.delete(sending))
      underway.add(sending)
      sent += BATCH
    } else await sleep(2)
  }
  await Promise.all(underway)
  samples.push(await sample(passed()))
  const everythingArrived = await sink.ask("arrived", { count: accepted, patienceMs: 60_000 })
  const { firstArrivals, received } = await sink.ask("report")
  await service.stop()
  say("")
  say(
    `${accepted} accepted (${refused} refused), ${firstArrivals.size} received, ${received - firstArrivals.size} twice, ${Math.round(accepted / lastsSeconds)}/s of ${perSecond}/s`
  )
  const { lagSeconds } = samples.at(-1)!
  const isTooMuch = lagSeconds > keepMinutes * 60
  if (isTooMuch)
    say(`the list is ${lagSeconds.toFixed(0)} s behind: this is more load than the machine bears, and says nothing`)
  const grown = isTooMuch ? [] : grownIn(samples)
  for (const line of grown) say(`  grows: ${line}`)
  if (!isTooMuch && grown.length === 0)
    say("flat: no table, no claim and no CPU a message of the last third is above the second third")
  if (!everythingArrived || firstArrivals.size !== accepted || grown.length > 0 || isTooMuch) process.exitCode = 1
} finally {
  await sink.stop()
  await databases.close()
}

function costsOf(from: Sample, to: Sample) {
  const messages = Math.max(1, to.accepted - from.accepted)
  return {
    cpu: ((to.cpu - from.cpu) / messages) * 1e6,
    postgresCpu: ((to.postgresCpu - from.postgresCpu) / messages) * 1e6,
    claim: ((to.claimSeconds - from.claimSeconds) / Math.max(1, to.claims - from.claims)) * 1e3
  }
}

function lineOf(from: Sample, to: Sample): string {
  const all = [...to.bytes.values()].reduce((sum, bytes) => sum + bytes, 0)
  const mib = (bytes: number | undefined) => ((bytes ?? 0) / 2 ** 20).toFixed(1)
  const { cpu, postgresCpu, claim } = costsOf(from, to)
  const columns = [
    [Math.round(to.atSeconds), 4],
    [to.accepted, 11],
    [mib(all), 13],
    [mib(to.bytes.get("event")), 12],
    [mib(to.bytes.get("message_view")), 11],
    [cpu.toFixed(0), 17],
    [postgresCpu.toFixed(0), 24],
    [claim.toFixed(2), 11],
    [to.lagSeconds.toFixed(1), 17]
  ] as const
  return columns.map(([text, width]) => String(text).padStart(width)).join("")
}

/** Compares thirds: in the first one nothing is forgotten yet. */
function grownIn(samples: ReadonlyArray<Sample>): ReadonlyArray<string> {
  const third = Math.floor(samples.length / 3)
  const [middle, late, last] = [samples[third]!, samples[2 * third]!, samples.at(-1)!]
  const tables = [...last.bytes].flatMap(([name, bytes]) => {
    const before = late.bytes.get(name) ?? 0
    return bytes > before * FLAT && bytes > SMALL_BYTES ? [`table ${name}: ${before} to ${bytes} bytes`] : []
  })
  const [then, now] = [costsOf(middle, late), costsOf(late, last)]
  const costs = (["cpu", "postgresCpu", "claim"] as const).flatMap((name) =>
    now[name] > then[name] * FLAT ? [`${name}: ${then[name].toFixed(2)} to ${now[name].toFixed(2)}`] : []
  )
  return [...tables, ...costs]
}
