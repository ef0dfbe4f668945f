/**
 * `npx node bench/erasure.ts`: one person is erased from a million messages. It prints how long that takes, and ends with 1 when it
 * takes longer than a minute, or when a dump of the database (`pg_dump`, searched with `grep`) still has anything of the person:
 * plain, in hex, in base64, percent-encoded, escaped as in JSON, or as a digest.
 *
 *   --messages 1000000   of everybody else. They are copies of messages that were delivered, row by row, as Posthaste wrote them
 *   --own 1000           of the person, half over WhatsApp and half over a webhook whose receiver repeats what it is told
 *   --eventstore         with the streams in the stand-in for EventStoreDB: all events that were ever written
 *                        are searched too. Of everybody else's messages PostgreSQL alone has copies
 *   --dump pg_dump       the program; it must not be older than the server (BENCH_DATABASE_URL names another server)
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import * as StandInMeta from "../demo/meta/StandInMeta.ts"
import { type StandIn, startEventStore } from "../test/servers/eventStore.ts"
import { temporaryDirectory } from "../test/servers/leftovers.ts"
import { on, scriptFlags, text, whole } from "../test/servers/scriptFlags.ts"
import { spellingsOf } from "../test/servers/spellings.ts"
import { openDatabases, query, settle } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { openEndpoint, openOrg, startPosthaste } from "./posthaste.ts"

const given = scriptFlags({
  messages: whole(1_000_000),
  own: whole(1_000),
  eventstore: on,
  dump: text("a program", "pg_dump")
})
const { messages: others, own } = given
const LIMIT_SECONDS = 60
const AT_ONCE = 500
/** Rows are copied on so many connections. */
const COPYISTS = 2
const STRETCH = 5_000

const PHONE = "4915177700017"
const marks = [PHONE, "Mustermann", "customer-4711", "case-of-4711", "dossier-4711", "line-of-4711", "key-of-4711"]
/** Of one who stays; each copy has a number in place of it. */
const SEED = "seed-0"

const say = (line: string) => void process.stdout.write(`${line}\n`)
const seconds = (from: number) => (monotonicNow() - from) / 1_000

/** Receives webhooks and answers with what it was sent. */
const repeating = async () => {
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(Buffer.concat(chunks)))
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, server }
}

const apiOf = (url: string, key: string) => {
  const call = async <A>(method: string, path: string, body?: object): Promise<A> => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`)
    return JSON.parse(text) as A
  }
  return call
}
type Call = ReturnType<typeof apiOf>

interface Listed {
  readonly id: string
  readonly status: string
}

const send = async (call: Call, messages: ReadonlyArray<object>): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let from = 0; from < messages.length; from += AT_ONCE) {
    const { items } = await call<{ items: ReadonlyArray<{ message?: { id: string } }> }>(
      "POST",
      "/outbound/messages/batch",
      { messages: messages.slice(from, from + AT_ONCE) }
    )
    ids.push(...items.map(({ message }) => message!.id))
  }
  return ids
}

const until = async (what: string, withinSeconds: number, holds: () => Promise<boolean>) => {
  const began = monotonicNow()
  while (!(await holds())) {
    if (seconds(began) > withinSeconds) throw new Error(`${what} took longer than ${withinSeconds} s`)
    await sleep(100)
  }
}

const listedBy = async (call: Call, filter: string) =>
  (await call<{ items: ReadonlyArray<Listed> }>("GET", `/outbound/messages?limit=1&${filter}`)).items

/** A delivered message, copied with all its rows; the facts are where readers have been already. */
const copy = async (databaseUrl: string, source: string, count: number) => {
  const tables = await query<{ name: string }>(
    databaseUrl,
    `select c.relname as name from pg_class c where c.relnamespace = 'posthaste'::regnamespace and c.relkind = 'r' order by 1`
  )
  // From tables of their own: a search for the source would read what was copied, too.
  const holding: Array<string> = []
  for (const { name } of tables) {
    const rows = await query(
      databaseUrl,
      `create table public.source_${name} as select * from posthaste.${name} t where strpos(t::text, '${source}') > 0`,
      `select 1 from public.source_${name}`
    )
    if (rows.length > 0) holding.push(name)
  }
  say(`copying a message with its rows in ${holding.join(", ")}`)
  const id = `('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))`
  const columns = await query<{ name: string; list: string; copies: string }>(
    databaseUrl,
    `select table_name as name, string_agg(column_name, ', ' order by ordinal_position) as list,
        string_agg(case data_type
          when 'uuid' then format('case when t.%1$I = ''${source}'' then ID::uuid else t.%1$I end', column_name)
          when 'text' then format('replace(replace(t.%1$I, ''${source}'', ID), ''${SEED}'', ''seed-'' || n)', column_name)
          when 'json' then format('replace(replace(t.%1$I::text, ''${source}'', ID), ''${SEED}'', ''seed-'' || n)::json', column_name)
          else format('t.%1$I', column_name) end, ', ' order by ordinal_position) as copies
      from information_schema.columns where table_schema = 'posthaste' and table_name in (${holding.map((name) => `'${name}'`).join()})
      group by table_name`
  )
  const copied = ({ name, list, copies }: (typeof columns)[number], from: number, to: number) =>
    `insert into posthaste.${name} (${list}) select ${copies.replaceAll("ID", id)}
      from generate_series(${from}, ${to}) n cross join public.source_${name} t`
  let next = 1
  const copyist = async () => {
    while (next <= count) {
      const from = next
      next += STRETCH
      const to = Math.min(count, from + STRETCH - 1)
      await query(databaseUrl, "set synchronous_commit = off", ...columns.map((table) => copied(table, from, to)))
    }
  }
  await Promise.all(Array.from({ length: COPYISTS }, copyist))
  await query(
    databaseUrl,
    `update posthaste.message_count set count = count + ${count} where status = 'DELIVERED'`,
    ...tables.map(({ name }) => `drop table public.source_${name}`)
  )
}

/** The lines of a dump that have anything of the person. */
const found = async (databaseUrl: string, directory: string) => {
  const patterns = join(directory, "patterns")
  writeFileSync(patterns, [...new Set(marks.flatMap(spellingsOf))].join("\n"))
  const dump = spawn(given.dump, [databaseUrl], { stdio: ["ignore", "pipe", "inherit"] })
  const grep = spawn("grep", ["-a", "-i", "-F", "-f", patterns], {
    env: { ...process.env, LC_ALL: "C" },
    stdio: ["pipe", "pipe", "inherit"]
  })
  let bytes = 0
  dump.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length
  })
  dump.stdout.pipe(grep.stdin)
  let count = 0
  let first = ""
  grep.stdout.on("data", (chunk: Buffer) => {
    if (first.length < 2_000) first += String(chunk)
    for (const byte of chunk) if (byte === 10) count += 1
  })
  const [[code]] = await Promise.all([once(dump, "close"), once(grep, "close")])
  if (code !== 0) throw new Error(`${given.dump} ended with ${code}`)
  return { bytes, count, first }
}

/** Events of the stand-in that have anything of the person. */
const traces = ({ log }: StandIn): number => {
  const spellings = [...new Set(marks.flatMap(spellingsOf))].map((spelling) => spelling.toLowerCase())
  return log.all.filter(({ stream, data, metadata }) => {
    const event = [stream, Buffer.from(data), Buffer.from(metadata)].join(" ").toLowerCase()
    return spellings.some((spelling) => event.includes(spelling))
  }).length
}

/** The most memory a process had since it began, or since `resetPeak`. */
const peakMiB = (pid: number) =>
  Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024)
const resetPeak = (pid: number) => writeFileSync(`/proc/${pid}/clear_refs`, "5")

const run = Effect.gen(function* () {
  const meta = yield* StandInMeta.start({})
  yield* Effect.promise(async () => {
    const eventStore = given.eventstore ? await startEventStore() : null
    const databases = await openDatabases()
    try {
      const databaseUrl = await databases.create("erasure")
      const settings = {
        WHATSAPP_BASE_URL: meta.url,
        POSTHASTE_RETENTION_DAYS: "0",
        ...(eventStore !== null && { EVENTSTORE_URL: eventStore.url })
      }
      const service = await startPosthaste({ databaseUrl, settings })
      const receiver = await repeating()
      const key = await openOrg(service.url)
      const call = apiOf(service.url, key)
      const endpoint = await openEndpoint(service.url, key, receiver.url, { maxInFlight: 64 })
      const webhook = {
        url: `${service.url}/api/v1/webhooks/whatsapp/inbound`,
        appSecret: "the-app-secret",
        verifyToken: "the-verify-token"
      }
      meta.register({ phoneNumberId: "1001", displayPhoneNumber: "15550783881", accessToken: "token", webhook })
      const { appSecret, verifyToken } = webhook
      await call("POST", "/whatsapp-accounts", { phoneNumberId: "1001", accessToken: "token", appSecret, verifyToken })

      const someone = {
        channel: "webhook",
        to: endpoint,
        eventType: "invoice.paid",
        dossierId: `dossier-${SEED}`,
        correlationId: `c-${SEED}`,
        metadata: { customer: `customer-${SEED}` },
        idempotencyKey: `key-${SEED}`,
        payloadJson: { text: `Dear ${SEED}, ${"your invoice is paid. ".repeat(10)}` }
      }
      const [source] = await send(call, [someone])
      await until("a delivery", 60, async () => (await listedBy(call, "status=DELIVERED")).length === 1)
      const began = monotonicNow()
      await copy(databaseUrl, source!, others)
      say(`${others} messages of others after ${seconds(began).toFixed(0)} s`)

      const details = {
        correlationId: "case-of-4711",
        metadata: { customer: "customer-4711" },
        orderingKey: "line-of-4711",
        payloadJson: { text: `Dear Mrs Mustermann, your number is ${PHONE}` }
      }
      const ownMessages = Array.from({ length: own }, (_, n) => ({
        ...details,
        idempotencyKey: `key-of-4711-${n}`,
        ...(n % 2 === 0
          ? { channel: "whatsapp", to: `+${PHONE}`, payloadJson: { text: "Dear Mrs Mustermann" } }
          : { channel: "webhook", to: endpoint, dossierId: "dossier-4711", orderingKey: `line-of-4711-${n}` }),
        // Some wait for longer than this runs.
        ...(n % 10 === 9 && { deliverAt: "2100-01-01T00:00:00Z" })
      }))
      await send(call, ownMessages)
      // It becomes one more.
      await call("POST", "/events", {
        eventType: "a.b",
        data: { name: "Mustermann" },
        metadata: { customer: "customer-4711" }
      })
      const listed = "metadata=customer%3Dcustomer-4711"
      await until("the delivery of the person's", 600, async () => {
        const [waiting] = await query<{ n: number }>(
          databaseUrl,
          `select count(*)::int as n from posthaste.message_view where correlation_id = 'case-of-4711' and status in ('SENT', 'DELIVERED')`
        )
        return waiting!.n >= own - Math.ceil(own / 10)
      })
      await settle(databaseUrl)
      const directory = temporaryDirectory()
      const before = await found(databaseUrl, directory)
      const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`
      say(`before: ${before.count} lines of a dump of ${mib(before.bytes)} have something of the person`)

      resetPeak(service.pid)
      const requested = monotonicNow()
      const { id } = await call<{ id: string }>("POST", "/erasures", { metadata: { customer: "customer-4711" } })
      let erasure = { status: "RUNNING", messages: 0, events: 0 }
      await until("the erasure", 3_600, async () => {
        erasure = await call("GET", `/erasures/${id}`)
        return erasure.status === "COMPLETED"
      })
      const took = seconds(requested)
      say(
        `${erasure.messages} messages and ${erasure.events} events erased among ${others} in ${took.toFixed(1)} s, at most ${peakMiB(service.pid)} MiB`
      )
      const after = await found(databaseUrl, directory)
      say(`after: ${after.count} lines of a dump of ${mib(after.bytes)} have something of the person`)
      if (after.count > 0) say(after.first)
      const events = eventStore === null ? 0 : traces(eventStore)
      if (eventStore !== null) say(`${events} of ${eventStore.log.all.length} events have something of the person`)
      const left = await listedBy(call, listed)
      await service.stop()
      receiver.server.close()
      if (
        after.count > 0 ||
        events > 0 ||
        took > LIMIT_SECONDS ||
        left.length > 0 ||
        before.count === 0 ||
        erasure.messages !== own + 1
      )
        process.exitCode = 1
    } finally {
      eventStore?.down()
      await databases.close()
    }
  })
}).pipe(Effect.scoped)

await Effect.runPromise(run)
