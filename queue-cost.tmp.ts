import { Effect, Layer, Redacted } from "/work/h/queue/node_modules/effect/dist/index.js"
import pg from "/work/h/queue/node_modules/pg/lib/index.js"
import * as PostgresPorts from "/work/h/queue/src/adapters/postgres/PostgresPorts.ts"
import { QueueRepair } from "/work/h/queue/src/application/ports/QueueRepair.ts"
import { openDatabases } from "./bench/databases.ts"
const N = Number(process.argv[2] ?? 1_000_000)
const program = Effect.gen(function* () {
  const dbs = yield* Effect.promise(() => openDatabases()); const url = Redacted.make(yield* Effect.promise(() => dbs.create('repair')))
  const layer = PostgresPorts.layer({ url, encryptionKeys: [Redacted.make(new Uint8Array(32).fill(7))], encryptionKey: Redacted.make(new Uint8Array(32).fill(7)) } as never)
  const context = yield* Layer.build(layer)
  const repair: any = yield* Effect.provideContext(QueueRepair as never, context as never)
  const client = new pg.Client({ connectionString: Redacted.value(url) })
  yield* Effect.promise(() => client.connect())
  const sql = (t: string) => Effect.promise(() => client.query(t))
  yield* sql("set search_path = posthaste")
  yield* sql(`create temp table m as select gen_random_uuid() as id, ('00000000-0000-4000-8000-' || lpad((n % 100)::text, 12, '0'))::uuid as lane, date_trunc('milliseconds', now()) + n * interval '1 millisecond' as due from generate_series(1, ${N}) n`)
  yield* sql("insert into ready select lane, due, id, 1, 1, 0 from m")
  yield* sql("insert into lane (lane, ready_at) select distinct lane, now() from m on conflict do nothing")
  yield* sql(`insert into message_view (id, generation, org_id, version, status, channel, recipient, created_at, view)
    select id, 1, 'acme', 1, 'QUEUED', 'webhook', lane::text, now(), json_build_object('id', id, 'version', 1, 'orgId', 'acme', 'channel', 'webhook', 'to', lane, 'destination', lane, 'status', 'QUEUED', 'epoch', 1, 'attempts', 0, 'attemptsMax', 6, 'nextAttemptAt', to_char(due at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'lastError', null, 'providerMessageId', null, 'eventType', 'order.paid', 'templateCode', null, 'dossierId', null, 'orderingKey', null, 'correlationId', 'abc-def', 'metadata', json_build_object('a', 'b'), 'deliverAt', null, 'expiresAt', null, 'endsAt', null, 'createdAt', '2026-01-01T00:00:00.000Z', 'updatedAt', '2026-01-01T00:00:00.000Z', 'endedAt', null, 'bodyErased', false, 'contradicted', false) from m`)
  yield* sql("analyze")
  const cpu = Effect.map(sql("select pg_backend_pid()"), () => process.cpuUsage())
  for (const round of [1, 2]) {
    const before = yield* Effect.promise(() => dbs.cpuSeconds()); const began = performance.now(); const own = process.cpuUsage()
    let after: any = null, stretches = 0, lost = 0, slowest = 0
    do {
      const t = performance.now()
      const r: any = yield* repair.lost(after, 5000)
      slowest = Math.max(slowest, performance.now() - t)
      lost += r.ids.length; after = r.next; stretches++
    } while (after !== null)
    const lines = yield* repair.mendLines(null, 1000)
    const t = performance.now()
    const lanes = yield* repair.mendLanes(null, 1000)
    const took = performance.now() - began
    const pgCpuMs = ((yield* Effect.promise(() => dbs.cpuSeconds()))! - before!) * 1000
    const used = process.cpuUsage(own)
    console.log({ round, N, lost, stretches, ms: took, pgCpuMs, slowest, lanesMs: performance.now() - t, ownCpuMs: (used.user + used.system) / 1000, lines, lanes })
  }
  void cpu
  yield* Effect.promise(() => client.end()); (globalThis as any).dbs = dbs
}).pipe(Effect.scoped)
await Effect.runPromise(program as never)
await (globalThis as any).dbs.close(); process.exit(0)
