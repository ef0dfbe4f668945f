/**
 * No list that is offered reads all messages: each filter is found by an index in the order of the list, as the server says
 * that it ran it. Of 30,000 messages of two orgs, a page of one org's looks at no more than a few hundred.
 */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as PostgresMessageViews from "../../../../src/adapters/postgres/messages/PostgresMessageViews.ts"
import { Postgres } from "../../../../src/adapters/postgres/Postgres.ts"
import { type MessageFilter, MessageViews, narrows } from "../../../../src/application/ports/MessageViews.ts"
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
  insert into message_view (id, generation, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id,
      created_at, ended_at, error_code, entries, view)
    select gen_random_uuid(), 1, case when n % 2 = 0 then 'acme' else 'other' end, 1,
      case when n % 5000 = 0 then 'DEAD_LETTER' when n % 3000 = 0 then 'QUEUED' else 'DELIVERED' end, 'webhook',
      'e-' || n % 500, 't-' || n % 500, 'd-' || n / 50, 'c-' || n / 50, now() - n * interval '1 minute',
      case when n % 5000 = 0 then now() end, case when n % 5000 = 0 then 'http_410' end,
      case when n % 100 = 0 then array[md5(concat_ws(E'\\x1f', 'acme', 'order', (n / 100)::text))::uuid] end,
      json_build_object('attempts', 1, 'updatedAt', now(), 'createdAt', now(), 'id', n)
    from generate_series(1, 30000) n;
  insert into idempotency (org_id, key, message_id, request_hash, at)
    select 'acme', 'k-' || n, gen_random_uuid(), 'h', now() from generate_series(1, 5000) n;
  insert into message_count (generation, org_id, channel, status, count)
    select generation, org_id, channel, status, count(*) from message_view group by 1, 2, 3, 4;
  analyze message_view; analyze idempotency; analyze message_count`

const scope = Scope.makeUnsafe()
let client: pg.Client

beforeAll(async () => {
  const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
  client = new pg.Client({ connectionString: url, options: "-c search_path=posthaste" })
  await client.connect()
  await client.query(fill)
})

afterAll(async () => {
  await client?.end()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

type Ask = (views: MessageViews["Service"]) => Effect.Effect<unknown, unknown>

/** The plan of what is asked first, as the server ran it. */
const plansOf = async (ask: Ask): Promise<ReadonlyArray<Node>> => {
  const asked: Array<Asked> = []
  const query = ({ text }: { readonly text: string }, values: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      asked.push({ text, values })
      return []
    })
  const postgres = Layer.succeed(Postgres, { reads: { query }, derived: { query } } as never)
  await Effect.runPromise(
    Effect.flatMap(MessageViews, ask).pipe(Effect.provide(PostgresMessageViews.layer.pipe(Layer.provide(postgres))))
  )
  const [{ text, values }] = asked as [Asked]
  const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...values])
  return nodesIn(rows[0]["QUERY PLAN"][0].Plan as Node)
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
  { updatedAfter: inMillis(-1), to: "e-8" },
  { attempts: 9, correlationId: "c-7" }
]

const page = { cursor: null, limit: 50 }

/** For each org the first, and of the two orgs that there are a page each. */
const LOOKED_MAX = 700

describe("the lists of all orgs", () => {
  it.each(wanted)("are read by the indexes of the orgs with %j", async (filter) => {
    const nodes = await plansOf(({ list }) => list(null, filter, page))
    const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
    expect(types.length).toBeGreaterThan(1)
    expect(types).not.toContain("Seq Scan")
    expect(looked(nodes, "message_view")).toBeLessThan(LOOKED_MAX)
    expect(looked(nodes, "idempotency")).toBeLessThan(10)
  })

  it.each([{}, { to: "e-8" }, { errorCode: "http_410" }])("of dead letters too, with %j", async (filter) => {
    const nodes = await plansOf(({ deadLetters }) => deadLetters(null, filter, page))
    const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
    expect(types).not.toContain("Seq Scan")
    expect(looked(nodes, "message_view")).toBeLessThan(LOOKED_MAX)
  })
})

describe("the list of messages", () => {
  it.each(wanted)("is read by an index with %j", async (filter) => {
    const nodes = await plansOf(({ list }) => list(OrgId.make("acme"), filter, page))
    const types = nodes.filter((node) => node["Relation Name"] === "message_view").map((node) => node["Node Type"])
    expect(types.length).toBeGreaterThan(0)
    expect(types).not.toContain("Seq Scan")
    expect(looked(nodes, "message_view")).toBeLessThan(300)
    expect(looked(nodes, "idempotency")).toBeLessThan(5)
  })

  it("looks at no message for a channel that the org never sent to, and at a page of one that it does", async () => {
    const lookedAt = async (channel: ChannelName) =>
      looked(await plansOf(({ list }) => list(OrgId.make("acme"), { channel }, page)), "message_view")
    expect(await lookedAt(ChannelName.make("amqp"))).toBe(0)
    expect(await lookedAt(ChannelName.make("webhook"))).toBeLessThan(300)
  })

  it("is tried with every field that narrows it", () => {
    const tried = new Set(wanted.flatMap((filter) => Object.keys(filter)))
    expect(narrows.filter((field) => !tried.has(field))).toEqual([])
  })
})
