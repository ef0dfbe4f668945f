/**
 * Every statement of the hot path keeps its plan whatever the server believes of the tables: before their first analyze, with
 * plans and statistics from when they were empty, and with those of full tables when nearly nothing is left. It looks the same
 * messages up by the same keys each time, so it touches about as many blocks for a message as with statistics that are right. A
 * scan of what else waits, of 10,000 messages, touches more by far.
 */
import { randomUUID } from "node:crypto"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, describe, expect, it } from "vitest"
import * as PostgresQueue from "../../../src/adapters/postgres/deliver/PostgresQueue.ts"
import * as PostgresDestinationHealth from "../../../src/adapters/postgres/destinations/PostgresDestinationHealth.ts"
import * as PostgresProjections from "../../../src/adapters/postgres/log/PostgresProjections.ts"
import * as PostgresMessageViews from "../../../src/adapters/postgres/messages/PostgresMessageViews.ts"
import { connectionsOf, Postgres } from "../../../src/adapters/postgres/Postgres.ts"
import { sessionPlanning } from "../../../src/adapters/postgres/planning.ts"
import * as PostgresEventStore from "../../../src/adapters/postgres/store/PostgresEventStore.ts"
import { DestinationHealth } from "../../../src/application/ports/DestinationHealth.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { type ClaimedMessage, Queue } from "../../../src/application/ports/Queue.ts"
import { DestinationId } from "../../../src/domain/ids.ts"
import { changeOf } from "../../../src/domain/message/health.ts"
import { resume } from "../../../src/domain/message/resume.ts"
import { type StoredFact, viewOf } from "../../../src/domain/message/view.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { delivered, newOrg, now, opened, type Sample, settled, someStep, started } from "../../contracts/sample.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const WAITING = 10_000
/** Few, so that a scan that a batch makes once weighs on each of its messages. */
const AT_ONCE = 10
/** A prepared statement is planned for its values five times, and then for good. */
const ROUNDS = 7
const FEW = 200

const orgId = newOrg()
const idOf = (n: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

/** What waits: copies of the first message that was accepted, over the lanes; with lines, half of them stand in lines of eight. */
const fill = (count: number, { lanes, lines }: Shape) => {
  const each = `generate_series(1, ${count}) n`
  const lane = `('01910000-0000-7000-8000-' || lpad(to_hex(n % ${lanes}), 12, '0'))::uuid`
  const line = lines ? `case when n % 2 = 0 then 'line-' || n / 16 end` : "null::text"
  const isHead = lines ? "(n % 2 = 1 or n % 16 = 0 or n = 2)" : "true"
  const first = "(select stream_id from event where version = 1 order by tx, position limit 1)"
  return `
    create temporary table sample as select e.stream_id as id, e.name, e.data::jsonb as data, m.body, v.org_id
      from event e join message m on m.id = e.stream_id join message_view v on v.id = e.stream_id
      where e.stream_id = ${first} and e.version = 1;
    insert into event (stream_id, tx, at, version, name, data)
      select ${idOf("n")}, log_tx(), now(), 1, s.name, s.data || jsonb_build_object('destination', ${lane}, 'orderingKey', ${line})
      from sample s, ${each};
    insert into message (id, org_id, channel, destination, recipient, accepted_at, data, body)
      select ${idOf("n")}, s.org_id, 'webhook', ${lane}, 'e', now(), s.data || jsonb_build_object('destination', ${lane}, 'orderingKey', ${line}), s.body
      from sample s, ${each};
    insert into idempotency (org_id, key, message_id, request_hash)
      select s.org_id, 'bulk-' || n, ${idOf("n")}, 'h' from sample s, ${each};
    insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
      select ${idOf("n")}, ${lane}, ${line}, case when ${isHead} then 'GIVEN' else 'WAITING' end, now() - interval '1 hour', 1, 1, 0
      from ${each} where ${line} is not null order by n;
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select ${lane}, now() - interval '1 hour' + n * interval '1 millisecond', ${idOf("n")}, 1, 1, 0 from ${each} where ${isHead};
    insert into lane (lane, ready_at) select lane, min(due_at) from ready group by lane on conflict do nothing;
    insert into message_view (id, generation, org_id, version, status, channel, destination, epoch, attempts, created_at, updated_at, dismissed, contradicted)
      select ${idOf("n")}, 1, s.org_id, 1, 'QUEUED', 'webhook', ${lane}, 1, 0, now(), now(), false, false from sample s, ${each};
    insert into health_bucket (generation, destination, starts_at, succeeded, failed, latencies)
      select 1, ${idOf("n")}, now(), 1, 0, '{1}' from ${each};
    drop table sample`
}

const tables =
  "event, message, detail, idempotency, line_entry, ready, lane, claim, message_view, message_count, health, health_bucket"

interface Shape {
  readonly lanes: number
  readonly lines: boolean
}

type Prepare = (shape: Shape, sql: (text: string) => Promise<unknown>, use: () => Promise<unknown>) => Promise<unknown>

/** What the server believes, and from when. */
const beliefs: Readonly<Record<string, Prepare>> = {
  "statistics that are right": async (shape, sql, use) => {
    await use()
    await sql(fill(WAITING, shape))
    await sql("analyze")
  },
  "the costs of a slow disk": async (shape, sql, use) => {
    await sql("set random_page_cost = 100")
    await use()
    await sql(fill(WAITING, shape))
    await sql("analyze")
  },
  "no statistics": async (shape, sql, use) => {
    await use()
    await sql(fill(WAITING, shape))
  },
  "statistics and plans of empty tables": async (shape, sql, use) => {
    await use()
    await sql("analyze")
    for (let n = 0; n < ROUNDS; n++) await use()
    await sql(fill(WAITING, shape))
  },
  "statistics and plans of empty tables on a slow disk": async (shape, sql, use) => {
    await sql("set random_page_cost = 100")
    await use()
    await sql("analyze")
    for (let n = 0; n < ROUNDS; n++) await use()
    await sql(fill(WAITING, shape))
  },
  "statistics of lists as they were before they were built anew": async (shape, sql, use) => {
    await use()
    await sql(fill(WAITING, shape))
    await sql("update message_view set generation = 7")
    await sql("analyze")
    await sql("update message_view set generation = 1")
  },
  "statistics of full tables that are empty": async (shape, sql, use) => {
    await use()
    await sql(fill(WAITING, shape))
    await sql("analyze")
    await sql(`create temporary table kept as select * from event order by tx, position limit 1`)
    await sql(`create temporary table message_kept as select m.* from message m join kept on kept.stream_id = m.id`)
    await sql(`create temporary table view_kept as select v.* from message_view v join kept on kept.stream_id = v.id`)
    await sql(`truncate ${tables}`)
    await sql("insert into event select * from kept; insert into message select * from message_kept")
    await sql("insert into message_view select * from view_kept")
    await sql(fill(FEW, shape))
  }
}

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

type Ports = EventStore | Queue | MessageViews | DestinationHealth | Projections

/** All ports on one connection, so that what they touch can be asked of its transaction. */
const portsOn = (client: pg.Client) => {
  const all = connectionsOf({
    ask: (query, answered) =>
      void client.query(query).then(
        ({ rows }) => answered(null, rows as never),
        (error: unknown) => answered(error, [] as never)
      )
  })
  const postgres = { appends: all, durable: all, queue: all, lookups: all, reads: all, derived: all, bulk: all }
  return Layer.mergeAll(
    PostgresEventStore.layer,
    PostgresQueue.layer,
    PostgresMessageViews.layer,
    PostgresDestinationHealth.layer,
    PostgresProjections.layer
  ).pipe(Layer.provide(Layer.succeed(Postgres, { ...postgres, listen: () => Effect.void, connections: () => [] })))
}

const sampleOf = ({ messageId, lane, queued, epoch, attempt, version, dueAt }: ClaimedMessage): Sample => ({
  ...{ id: messageId, lane, version },
  message: resume(queued, epoch, attempt, version, dueAt)!
})

const lease = "1 minute"

const visit = (
  { lines }: Shape,
  steps: <A>(name: string, count: number, step: Effect.Effect<A, unknown, Ports>) => Effect.Effect<A, unknown, Ports>
) =>
  Effect.gen(function* () {
    const store = yield* EventStore
    const queue = yield* Queue
    const fresh = Array.from({ length: AT_ONCE }, (_, n) => {
      const orderingKey = lines && n % 2 === 0 ? "line" : null
      return opened({ orgId, orderingKey, idempotency: { orgId, key: randomUUID(), requestHash: "h" } })
    })
    yield* steps("accept", AT_ONCE, store.append(fresh.map(({ entry }) => entry)))
    const request = { ...asWorker("w"), limit: AT_ONCE, perLane: AT_ONCE }
    const claim = yield* steps("claim", AT_ONCE, queue.claim(request))
    if (claim === null) return yield* Effect.die("nothing was due")
    const [first, second] = [claim.messages.slice(0, AT_ONCE / 2), claim.messages.slice(AT_ONCE / 2)]
    const begun = first.map((claimed) =>
      started(sampleOf(claimed), {
        fence: claim.batch,
        gate: { lane: claimed.lane, generation: claimed.terms.generation }
      })
    )
    const starts = yield* steps("start", begun.length, store.append(begun.map(({ entry }) => entry)))
    expect(new Set(starts.map(({ type }) => type))).toEqual(new Set(["Appended"]))
    const ended = begun.map(({ after }) => settled(after, delivered, { fence: claim.batch }))
    yield* steps("settle", ended.length, store.append(ended.map(({ entry }) => entry)))
    yield* steps(
      "put back",
      second.length,
      queue.putBack(
        claim.batch,
        second.map(({ messageId }) => messageId)
      )
    )
    yield* steps("release", first.length, queue.release(claim.batch, []))

    const abandoned = yield* queue.claim({ ...request, lease: "0 millis" } as never)
    const taken = yield* steps("take over", abandoned!.messages.length, queue.takeOver("v", lease as never, 8))
    const found = taken.flatMap(({ messages }) => messages)
    yield* steps("recover", found.length, store.loadMany(found.map(({ messageId }) => messageId)))
    for (const { batch, messages } of taken) yield* queue.release(batch, messages)

    const facts = fresh.map(({ entry, after }) => ({
      after,
      history: entry.facts.map((fact, n): StoredFact => ({ version: n + 1, at: entry.at, fact }))
    }))
    const views = facts.flatMap(({ after, history }) => viewOf(after.id, history) ?? [])
    yield* steps("list", views.length, (yield* MessageViews).project(yield* someStep("messages"), views))
    const change = changeOf([{ at: now(), succeeded: true, durationMs: 4 }])
    const changes = new Map(facts.map(({ after }) => [DestinationId.make(after.lane), change]))
    yield* steps("count health", changes.size, (yield* DestinationHealth).project(yield* someStep("health"), changes))
  })

/** Blocks that each step touches for a message: the most of all rounds. */
const touched = async (belief: string, shape: Shape): Promise<ReadonlyMap<string, number>> => {
  const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
  const settings = { search_path: "posthaste", ...sessionPlanning }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const client = new pg.Client({ connectionString: url, options: options.join(" ") })
  await client.connect()
  const sql = (text: string) => client.query(text)
  for (const table of tables.split(", ")) await sql(`alter table ${table} set (autovacuum_enabled = off)`)
  const most = new Map<string, number>()
  const blocks = async () => {
    const { rows } = await client.query<{ blocks: string }>(
      "select sum(pg_stat_get_xact_blocks_fetched(oid)) as blocks from pg_class where relnamespace = 'posthaste'::regnamespace"
    )
    return Number(rows[0]!.blocks)
  }
  const ports = await Effect.runPromise(Scope.provide(Layer.build(portsOn(client)), scope))
  const use = (isMeasured: boolean) =>
    Effect.runPromise(
      visit(
        shape,
        Effect.fnUntraced(function* (name, count, step) {
          yield* Effect.promise(() => sql("begin"))
          // What earlier transactions touched may not have been handed in yet.
          const before = yield* Effect.promise(blocks)
          const answer = yield* step
          const each = ((yield* Effect.promise(blocks)) - before) / count
          yield* Effect.promise(() => sql("commit"))
          if (isMeasured) most.set(name, Math.max(most.get(name) ?? 0, each))
          return answer
        })
      ).pipe(Effect.provideContext(ports))
    )
  const begin = Effect.flatMap(Projections, ({ build }) => build("health", 1, 0))
  await Effect.runPromise(Effect.provideContext(begin, ports))
  await beliefs[belief]!(shape, sql, () => use(false))
  for (let n = 0; n < ROUNDS; n++) await use(true)
  await client.end()
  return most
}

describe.each([
  { name: "in one lane", lanes: 1, lines: false },
  { name: "in a thousand lanes, half of it in lines", lanes: 1_000, lines: true }
])("what waits $name", (shape) => {
  const [right, ...wrong] = Object.keys(beliefs)
  const asItIs = touched.bind(null, right!, shape)
  let reference: Promise<ReadonlyMap<string, number>> | null = null

  it("costs a few look-ups a message", async () => {
    reference ??= asItIs()
    for (const [step, blocks] of await reference) expect(blocks, step).toBeLessThan(80)
  })

  it.each(wrong)("costs no more with %s", async (belief) => {
    reference ??= asItIs()
    const expected = await reference
    const most = await touched(belief, shape)
    const report = [...most].map(([step, blocks]) => `${step} ${blocks.toFixed(1)} (${expected.get(step)!.toFixed(1)})`)
    if (process.env["POSTHASTE_TEST_SHOW"]) console.info(`${belief}: ${report.join(" · ")}`)
    for (const [step, blocks] of most) {
      expect(blocks, `${step}: ${report.join(" · ")}`).toBeLessThan(expected.get(step)! * 1.3 + 12)
    }
  })
})
