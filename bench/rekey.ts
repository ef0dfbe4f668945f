/**
 * `npx node bench/rekey.ts`: `posthaste rekey` seals 100,000 secrets with a new encryption key, is killed twice on its way, and is run
 * again. It prints how long that takes, and ends with 1 when a value is left that the old key sealed, when one does not open with the
 * new key alone to what it was, or when a message does not carry its target's secret afterwards.
 *
 *   --secrets 100000   sealed values, four of each HTTP target
 *   --kills 2
 */
import { spawn } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Redacted } from "effect"
import pg from "pg"
import { headersOf, parametersOf, secretOf } from "../src/adapters/postgres/destinations/sealedValues.ts"
import { sealing } from "../src/adapters/postgres/destinations/sealing.ts"
import { scriptFlags, whole } from "../test/servers/scriptFlags.ts"
import { openDatabases, query } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { startPosthaste } from "./posthaste.ts"

const { secrets, kills } = scriptFlags({ secrets: whole(100_000), kills: whole(2, [0, 1_000]) })
const EACH = 4
const targets = Math.ceil(secrets / EACH)
const AT_ONCE = 1_000
const ORG = "bench"

const say = (line: string) => void process.stdout.write(`${line}\n`)
const seconds = (from: number) => `${((monotonicNow() - from) / 1_000).toFixed(1)} s`

const [old, young] = [randomBytes(32), randomBytes(32)]
const text = (...keys: ReadonlyArray<Buffer>) => keys.map((key) => key.toString("base64")).join()
const keyOf = (bytes: Buffer) => Redacted.make(new Uint8Array(bytes))
const sealed = (key: Buffer, value: string, belongsTo: string) =>
  sealing(keyOf(key)).seal(Redacted.make(value), belongsTo).toString("base64")

/** What the nth target's four values are, and what each belongs to. */
const valuesOf = (id: string, n: number) => ({
  token: [`token ${n}`, secretOf(ORG, id, "token")],
  pin: [`pin ${n}`, secretOf(ORG, id, "pin")],
  headers: [JSON.stringify({ "x-plain": `header ${n}` }), headersOf(ORG, id)],
  url: [`?key=${n}`, parametersOf(ORG, id, "url")]
})

/** Rows like that of a target that was made over the API, each with values of its own. */
const fill = async (client: pg.Client, model: string) => {
  const ids: Array<string> = []
  for (let from = 0; from < targets; from += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, targets - from) }, (_, n) => {
      const id = randomUUID()
      const { token, pin, headers, url } = valuesOf(id, from + n)
      const seal = ([value, belongsTo]: ReadonlyArray<string>) => sealed(old, value!, belongsTo!)
      return {
        id,
        secrets: { token: seal(token!), pin: seal(pin!) },
        settings: { headers: seal(headers!), url: `https://shop.example/hook?sealed:${seal(url!)}` }
      }
    })
    await client.query(
      `insert into posthaste.destination select (jsonb_populate_record(d, jsonb_build_object(
          'id', n.one -> 'id', 'secrets', n.one -> 'secrets', 'settings', d.settings || (n.one -> 'settings')))).*
        from posthaste.destination d cross join jsonb_array_elements($1::jsonb) n(one) where d.id = $2`,
      [JSON.stringify(some), model]
    )
    ids.push(...some.map(({ id }) => id))
  }
  return ids
}

interface Row {
  readonly id: string
  readonly token: string
  readonly pin: string
  readonly headers: string
  readonly url: string
}

const rowsOf = async (client: pg.Client) =>
  (
    await client.query<Row>(
      `select id, secrets ->> 'token' as token, secrets ->> 'pin' as pin, settings ->> 'headers' as headers,
          split_part(settings ->> 'url', '?sealed:', 2) as url
        from posthaste.destination where secrets ? 'pin'`
    )
  ).rows

const isYoung = sealing(keyOf(young)).isNewest
/** Each value begins with its form and the id of its key: so many letters of base64 are that and nothing else. */
const mark = sealed(young, "", "").slice(0, 6)
/** How many targets the new key has sealed. */
const doneIn = async (client: pg.Client) =>
  (
    await client.query<{ n: number }>(
      "select count(*)::int as n from posthaste.destination where starts_with(secrets ->> 'pin', $1)",
      [mark]
    )
  ).rows[0]!.n

const program = join(import.meta.dirname, "../bin/posthaste")

const databases = await openDatabases()
const receiver = createServer((request, response) => {
  heard.push(`${request.url} ${JSON.stringify(request.headers)}`)
  response.end()
}).listen(0, "127.0.0.1")
const heard: Array<string> = []
try {
  await once(receiver, "listening")
  const far = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const databaseUrl = await databases.create("rekey")
  const settings = { POSTHASTE_ENCRYPTION_KEY: "", POSTHASTE_OPERATOR_KEY: randomBytes(24).toString("base64url") }
  const call = async <A>(url: string, path: string, body: object): Promise<A> => {
    const headers = {
      ...{
        authorization: `Bearer ${settings.POSTHASTE_OPERATOR_KEY}`,
        "x-org-id": ORG,
        "content-type": "application/json"
      }
    }
    const response = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as A
  }
  const start = (keys: string) =>
    startPosthaste({ databaseUrl, settings: { ...settings, POSTHASTE_ENCRYPTION_KEYS: keys } })

  const before = await start(text(old))
  const { id: model } = await call<{ id: string }>(before.url, "/http-targets", {
    ...{ url: `${far}/real?key=of-the-real`, secrets: { token: "token of the real" } },
    headers: { authorization: "Bearer {{token}}", "x-plain": "header of the real" }
  })
  await before.stop()
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const ids = await fill(client, model)
  await query(databaseUrl, "vacuum analyze posthaste.destination")
  say(`${targets * EACH} values of ${targets} targets are sealed with the old key`)

  // A Posthaste with both keys works meanwhile.
  const both = await start(text(young, old))
  const env = { PATH: process.env["PATH"], DATABASE_URL: databaseUrl, POSTHASTE_ENCRYPTION_KEYS: text(young, old) }
  const run = () => spawn(program, ["rekey", "--json"], { env, stdio: ["ignore", "pipe", "inherit"], detached: true })
  const began = monotonicNow()
  for (let kill = 1; kill <= kills; kill++) {
    const child = run()
    const ended = once(child, "close")
    while ((await doneIn(client)) < (targets * kill) / (kills + 1)) {
      if (child.exitCode !== null) throw new Error("it was done before it could be killed: give it more secrets")
      await sleep(200)
    }
    process.kill(-child.pid!, "SIGKILL")
    await ended
    say(`killed after ${seconds(began)}: ${await doneIn(client)} of ${targets} targets`)
  }
  const last = run()
  let printed = ""
  last.stdout.on("data", (chunk) => (printed += String(chunk)))
  const [code] = (await once(last, "close")) as [number | null]
  say(`complete after ${seconds(began)}, code ${code}: ${printed.trim().replace(/\s+/g, " ")}`)
  await both.stop()

  const rows = new Map((await rowsOf(client)).map((row) => [row.id, row]))
  await client.end()
  const { open } = sealing(keyOf(young))
  const wrong = ids.filter((id, n) => {
    const row = rows.get(id)
    return Object.entries(valuesOf(id, n)).some(([name, [value, belongsTo]]) => {
      const stored = Buffer.from(row?.[name as keyof Row] ?? "", "base64")
      return !isYoung(stored) || Redacted.value(open(stored, belongsTo!)) !== value
    })
  })
  say(`${ids.length * EACH - wrong.length} of ${targets * EACH} values open with the new key alone to what they were`)

  const after = await start(text(young))
  await call(after.url, "/outbound/messages", { channel: "http", to: model, payloadJson: { n: 1 } })
  for (let waited = 0; heard.length === 0 && waited < 600; waited++) await sleep(100)
  await after.stop()
  const arrived = ["/real?key=of-the-real", "Bearer token of the real", "header of the real"]
  const isWhole = arrived.every((secret) => heard[0]?.includes(secret))
  say(`a message carries its target's secrets: ${isWhole ? "yes" : "NO"}`)
  const refused = await start(text(old)).then(
    (running) => running.stop().then(() => false),
    () => true
  )
  say(`a start with the old key alone is refused: ${refused ? "yes" : "NO"}`)
  if (code !== 0 || wrong.length > 0 || ids.length !== targets || !isWhole || !refused) process.exitCode = 1
} finally {
  receiver.close()
  await databases.close()
}
