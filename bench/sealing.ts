/**
 * `npx node bench/sealing.ts`: a million bodies, answers and hashes of requests that were stored in the clear are sealed by
 * `posthaste rekey`, which is killed twice in between; then another encryption key comes, and a second run seals the data keys anew.
 * It prints the seconds of both, and fails when anything is left in the clear, can't be opened with the new key alone, or is another
 * text than it was.
 *
 * `--messages N` another size
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Redacted } from "effect"
import { sealing } from "../src/adapters/postgres/destinations/sealing.ts"
import { migrateAt } from "../src/adapters/postgres/Postgres.ts"
import * as PostgresPorts from "../src/adapters/postgres/PostgresPorts.ts"
import { SCHEMA_DEFAULT } from "../src/adapters/postgres/schemaName.ts"
import { MessageData } from "../src/application/ports/MessageData.ts"
import type { MessageId } from "../src/domain/ids.ts"
import { scriptFlags, whole } from "../test/servers/scriptFlags.ts"
import { openDatabases, query, settle } from "./databases.ts"
import { monotonicNow } from "./monotonicNow.ts"

const { messages } = scriptFlags({ messages: whole(1_000_000) })
const [old, young] = [3, 9].map((byte) => Buffer.alloc(32, byte).toString("base64")) as [string, string]

const unsealed = `select (select count(*) from posthaste.message where body not like E'\\x01%')
    + (select count(*) from posthaste.detail where body not like E'\\x01%')
    + (select count(*) from posthaste.idempotency where request_hash not like E'\\x01%') as count`

const databases = await openDatabases()
const url = await databases.create("sealing")
await Effect.runPromise(migrateAt(Redacted.make(url), SCHEMA_DEFAULT))
for (let from = 0; from < messages; from += 50_000) {
  await query(
    url,
    `with ids as (select n, md5('message ' || n)::uuid as id from generate_series(${from}, ${Math.min(messages, from + 50_000) - 1}) n),
        bodies as (insert into posthaste.message (id, org_id, channel, destination, accepted_at, data, body) select id, 'acme', 'webhook', id, now(), '{}', json_build_object('n', n, 'text', repeat(md5(n::text), 9)) from ids),
        keys as (insert into posthaste.idempotency (org_id, key, message_id, request_hash, at) select 'acme', 'key ' || n, id, md5(n::text), now() from ids)
      insert into posthaste.detail (stream_id, version, epoch, attempt, body) select id, 3, 1, 1, 'thanks for ' || n from ids`
  )
}
await settle(url)

const rekey = (keys: string) =>
  spawn(join(import.meta.dirname, "../bin/posthaste"), ["rekey"], {
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: url,
      POSTHASTE_ENCRYPTION_KEYS: keys,
      POSTHASTE_SEAL_BODIES: "true"
    },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true
  })

const left = async () => Number((await query<{ count: string }>(url, unsealed))[0]!.count)
let began = monotonicNow()
let spent = 0
for (const killAt of [0.75, 0.4, null]) {
  const child = rekey(old)
  const ended = once(child, "close")
  child.stdout.pipe(process.stdout)
  if (killAt !== null) {
    while ((await left()) > 3 * messages * killAt && child.exitCode === null) await sleep(500)
    process.kill(-child.pid!, "SIGKILL")
  }
  await ended
  spent = monotonicNow() - began
}
const clear = await left()
console.log(
  `${3 * messages} texts sealed over two SIGKILLs in ${(spent / 1000).toFixed(1)} s, ${clear} left in the clear`
)

began = monotonicNow()
const again = rekey(`${young},${old}`)
again.stdout.pipe(process.stdout)
await once(again, "close")
console.log(
  `another encryption key, with a look at all that may be in the clear: ${((monotonicNow() - began) / 1000).toFixed(1)} s`
)

const youngAlone = Effect.succeed(sealing(Redacted.make(new Uint8Array(Buffer.from(young, "base64")))))
let wrong = 0
for (let from = 0; from < messages; from += 10_000) {
  const rows = await query<{ id: MessageId; n: string; body: string; hash: string }>(
    url,
    `select md5('message ' || n)::uuid as id, n, json_build_object('n', n, 'text', repeat(md5(n::text), 9))::text as body, md5(n::text) as hash
      from generate_series(${from}, ${Math.min(messages, from + 10_000) - 1}) n`
  )
  const read = Effect.flatMap(MessageData, ({ load }) => load(rows.map(({ id }) => id)))
  const found = await Effect.runPromise(
    Effect.provide(read, PostgresPorts.truth({ url: Redacted.make(url), sealing: youngAlone, asItIs: true }))
  )
  for (const { id, n, body, hash } of rows) {
    const data = found.get(id)
    if (data?.body !== body || data.key?.requestHash !== hash || data.responses[0]?.body !== `thanks for ${n}`)
      wrong += 1
  }
}
console.log(`read with the new key alone: ${messages} messages, ${wrong} wrong`)
await databases.close()
if (clear > 0 || wrong > 0) process.exit(1)
