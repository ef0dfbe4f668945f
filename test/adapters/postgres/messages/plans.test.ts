/**
 * No list that is offered reads all messages: each filter is found by an index in the order of the list, as the server says
 * that it ran it. Of 30,000 messages of two orgs, a page of one org's looks at no more than a few hundred.
 */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as PostgresQueueRepair from "../../../../src/adapters/postgres/deliver/PostgresQueueRepair.ts"
import * as PostgresMessageViews from "../../../../src/adapters/postgres/messages/PostgresMessageViews.ts"
import { Postgres } from "../../../../src/adapters/postgres/Postgres.ts"
import { type MessageFilter, MessageViews } from "../../../../src/application/ports/MessageViews.ts"
import { QueueRepair } from "../../../../src/application/ports/QueueRepair.ts"
import { ChannelName, OrgId } from "../../../../src/domain/ids.ts"
import { inMillis } from "../../../contracts/sample.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

interface Asked {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
}

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly Plans?: ReadonlyArray<Node>
}

const nodesIn = (node: Node): ReadonlyArray<Node> => [node, ...(node.Plans ?? []).flatMap(nodesIn)]

/** How many rows of the table were looked at. */
const looked = (nodes: ReadonlyArray<Node>, table: string) =>
  nodes
    .filter((node) => node["Relation Name"] === table)
    .reduce(
      (sum, node) => sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
      0
    )

const fill = `
  alter table message_view set (autovacuum_enabled = off);
  insert into message_view (id, generation, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id,
      created_at, ended_at, ends_at, error_code, entries, view)
    select gen_random_uuid(), 1, case when n % 2 = 0 then 'acme' else 'other' end, 1,
      case when n % 5000 = 0 then 'DEAD_LETTER' when n % 3000 = 0 then 'QUEUED' else 'DELIVERED' end, 'webhook',
      'e-' || n % 500, 't-' || n % 500, 'd-' || n / 50, 'c-' || n / 50, now() - n * interval '1 minute',
      case when n % 5000 = 0 then now() end, case when n % 3000 = 0 and n % 5000 <> 0 then now() + interval '30 days' end,
      case when n % 5000 = 0 then 'http_410' end,
      case when n % 100 = 0 then array[md5(concat_ws(E'\\x1f', 'acme', 'order', (n / 100)::text))::uuid] end,
      json_build_object('attempts', 1, 'updatedAt', now(), 'createdAt', now(), 'id', n)
    from generate_series(1, 30000) n;
  insert into idempotency (org_id, key, message_id, request_hash, at)
    select 'acme', 'k-' || n, gen_random_uuid(), 'h', now() from generate_series(1, 5000) n;
  insert into message_count (generation, org_id, channel, status, count)
    select generation, org_id, channel, status, count(*) from message_view group by 1, 2, 3, 4;
`
const analyze = "analyze message_view; analyze idempotency; analyze message_count;"

/** What the server believes of the tables. */
const beliefs = {
  "statistics that are right": `${fill}${analyze}`,
  "no statistics": fill,
  "statistics of empty tables": `${analyze}${fill}`
} as const

/** Of the messages. */
const OPEN = 8
const DESTINATION = "01910000-0000-7000-8000-000000000001"

const scope = Scope.makeUnsafe()
let client: pg.Client

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

type Ask = Effect.Effect<unknown, unknown, MessageViews | QueueRepair>

/** The plan of what is asked first, as the server ran it. */
const plansOf = async (ask: Ask): Promise<ReadonlyArray<Node>> => {
  const asked: Array<Asked> = []
  const query = ({ text }: { readonly text: string }, values: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      asked.push({ text, values })
      return []
    })
  const ways = { query, rows: query }
  const postgres = Layer.mergeAll(
    Layer.succeed(Postgres, { reads: ways, derived: ways, queue: ways, durable: ways } as never)
  )
  const ports = Layer.merge(PostgresMessageViews.layer, PostgresQueueRepair.layer).pipe(Layer.provide(postgres))
  // Nothing is answered to whoever wants a row.
  await Effect.runPromise(ask.pipe(Effect.provide(ports), Effect.exit))
  const [{ text, values }] = asked as [Asked]
  const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...values])
  return nodesIn(rows[0]["QUERY PLAN"][0].Plan as Node)
}

/** How many rows of the list were fetched by an index or read in a scan; what was changed is taken back. */
const fetched = async (sql: string): Promise<number> => {
  await client.query("begin")
  const looks = async () => {
    const { rows } = await client.query<{ looks: string }>(
      `select sum(pg_stat_get_xact_tuples_fetched(oid))
          + sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relkind = 'r') as looks
        from pg_class where oid = 'message_view'::regclass
          or oid in (select indexrelid from pg_index where indrelid = 'message_view'::regclass)`
    )
    return Number(rows[0]!.looks)
  }
  const before = await looks()
  await client.query(sql)
  const after = await looks()
  await client.query("rollback")
  return after - before
}

const wanted: ReadonlyArray<MessageFilter> = [
  {},
  { idempotencyKey: "k-7" },
  { metadata: { name: "order", value: "7" } },
  { metadata: { name: "order", value: "none" } },
  { correlationId: "c-7" },
  { correlationId: "none" },
  { dossierId: "d-7" },
  { to: "e-8" },
  { to: "none" },
  { errorCode: "http_410" },
  { eventType: "t-8" },
  { status: "QUEUED" },
  { createdAfter: inMillis(-3_600_000) },
  { createdBefore: inMillis(-864_000_000) },
  { channel: "webhook" },
  { updatedAfter: inMillis(-1), to: "e-8" },
  { attempts: 9, correlationId: "c-7" }
]

const page = { cursor: null, limit: 50 }

/** For each org the first, and of the two orgs that there are a share each. */
const LOOKED_MAX = 2_500

describe.each(Object.entries(beliefs))("with %s", (belief, prepare) => {
  // How rare an entry of the metadata is, the statistics alone tell.
  const offered = wanted.filter(({ metadata }) => metadata === undefined || belief === "statistics that are right")
  beforeAll(async () => {
    const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
    client = new pg.Client({ connectionString: url, options: "-c search_path=posthaste" })
    await client.connect()
    await client.query(prepare)
  })

  afterAll(() => client.end())

  describe("the lists of all orgs", () => {
    it.each(wanted)("are read by the indexes of the orgs with %j", async (filter) => {
      const nodes = await plansOf(Effect.flatMap(MessageViews, ({ list }) => list(null, filter, page)))
      const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
      expect(types.length).toBeGreaterThan(1)
      expect(types).not.toContain("Seq Scan")
      expect(looked(nodes, "message_view")).toBeLessThan(LOOKED_MAX)
      expect(looked(nodes, "idempotency")).toBeLessThan(10)
    })

    it.each([{}, { to: "e-8" }, { errorCode: "http_410" }])("of dead letters too, with %j", async (filter) => {
      const nodes = await plansOf(Effect.flatMap(MessageViews, ({ deadLetters }) => deadLetters(null, filter, page)))
      const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
      expect(types).not.toContain("Seq Scan")
      expect(looked(nodes, "message_view")).toBeLessThan(LOOKED_MAX)
    })
  })

  describe("the list of messages", () => {
    it.each(offered)("is read by an index with %j", async (filter) => {
      const nodes = await plansOf(Effect.flatMap(MessageViews, ({ list }) => list(OrgId.make("acme"), filter, page)))
      const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
      expect(types.length).toBeGreaterThan(0)
      expect(types).not.toContain("Seq Scan")
      expect(looked(nodes, "message_view")).toBeLessThan(300)
      expect(looked(nodes, "idempotency")).toBeLessThan(5)
    })

    it("goes on in its middle, and looks at no more", async () => {
      const middle = { ...page, cursor: `${inMillis(-600_000_000).toJSON()}/01900000-0000-7000-8000-000000000000` }
      const nodes = await plansOf(Effect.flatMap(MessageViews, ({ list }) => list(OrgId.make("acme"), {}, middle)))
      expect(looked(nodes, "message_view")).toBeLessThan(300)
      expect(looked(nodes, "message_view")).toBeGreaterThan(50)
    })

    it("looks at no message for a channel that the org never sent to", async () => {
      const list = Effect.flatMap(MessageViews, ({ list }) =>
        list(OrgId.make("acme"), { channel: ChannelName.make("amqp") }, page)
      )
      expect(looked(await plansOf(list), "message_view")).toBe(0)
    })
  })

  describe("however many have ended", () => {
    it("those that should be in the queue are found without a look at them", async () => {
      const nodes = await plansOf(Effect.flatMap(QueueRepair, ({ lost }) => lost(null, 5_000)))
      expect(looked(nodes, "message_view")).toBe(OPEN)
    })

    it("a sweep goes on where the one before ended", async () => {
      const sweep = `select next_created from forget_ended(now(), null, now() - interval '1 day', null,
        'acme', now() - interval '10 days', '00000000-0000-0000-0000-000000000000', 100)`
      const looks = await fetched(sweep)
      expect(looks).toBeGreaterThanOrEqual(100)
      expect(looks).toBeLessThan(500)
    })

    it("a removed destination is looked for in a stretch of them", async () => {
      await client.query(
        `insert into destination (id, channel, org_id, version, settings, secrets, created_at, updated_at, removed_at)
          values ('${DESTINATION}', 'whatsapp', 'acme', 1, '{}', '{}', now(), now(), now()) on conflict do nothing`
      )
      const looks = await fetched(`select look_through('${DESTINATION}', 1)`)
      expect(looks).toBeGreaterThanOrEqual(1_000)
      expect(looks).toBeLessThan(1_100)
    })
  })
})
