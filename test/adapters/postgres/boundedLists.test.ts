/**
 * What a page of a list reads has a bound, whatever is asked for and however much there is. Each filter that a list offers, and each two of
 * them, is asked for on tables where it is true of most rows, of none, and of few in the oldest corner; the blocks that the server touches
 * are counted. The rows lie in no order, so that nearly each row that is looked at is a block: a page that looked through all would
 * touch far more than the bound. A filter or a list that is offered and not in the tables below fails.
 */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { OpenApi } from "effect/http-api"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Api } from "../../../src/adapters/http/server/Api.ts"
import * as PostgresBacklogs from "../../../src/adapters/postgres/destinations/PostgresBacklogs.ts"
import * as PostgresDestinations from "../../../src/adapters/postgres/destinations/PostgresDestinations.ts"
import * as PostgresErasures from "../../../src/adapters/postgres/erasures/PostgresErasures.ts"
import { readsOf } from "../../../src/adapters/postgres/events/PostgresEvents.ts"
import * as PostgresEventTypes from "../../../src/adapters/postgres/events/PostgresEventTypes.ts"
import * as PostgresAuditTrail from "../../../src/adapters/postgres/log/PostgresAuditTrail.ts"
import * as PostgresTimelines from "../../../src/adapters/postgres/log/PostgresTimelines.ts"
import * as PostgresMessageViews from "../../../src/adapters/postgres/messages/PostgresMessageViews.ts"
import { Postgres } from "../../../src/adapters/postgres/Postgres.ts"
import * as PostgresReplays from "../../../src/adapters/postgres/replays/PostgresReplays.ts"
import { SealedTexts } from "../../../src/adapters/postgres/SealedTexts.ts"
import { STRETCH } from "../../../src/adapters/postgres/stretches.ts"
import { AuditTrail } from "../../../src/application/ports/AuditTrail.ts"
import { Backlogs } from "../../../src/application/ports/Backlogs.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventTypes } from "../../../src/application/ports/EventTypes.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { Timelines } from "../../../src/application/ports/Timelines.ts"
import { ChannelName, EventId, OrgId } from "../../../src/domain/ids.ts"
import { inMillis } from "../../contracts/sample.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const ROWS = 60_000
const FEW = 5

/** What most rows have in common, what some and few have, and what none has. */
const kinds = ["most", "some", "few", "none"] as const
type Kind = (typeof kinds)[number]
type Values = Readonly<Partial<Record<Kind, unknown>>>

const acme = OrgId.make("acme")
const page = { limit: 50, cursor: null }

const of = (name: string) => ({ most: name, few: `${name}-few`, none: `${name}-none` })

type Filter = Readonly<Record<string, unknown>>
type Ports =
  | MessageViews
  | AuditTrail
  | Backlogs
  | Destinations
  | Erasures
  | EventTypes
  | Replays
  | Timelines
  | Postgres
type Ask = (filter: Filter) => Effect.Effect<unknown, unknown, Ports>

const ID = "01910000-0000-7000-8000-000000000000"
const reads = (ask: (events: ReturnType<typeof readsOf>) => Effect.Effect<unknown, unknown>) =>
  Effect.flatMap(Postgres, (postgres) => ask(readsOf({ ...postgres, texts: undefined as never })))

const entry = (value: string) => ({ name: "order", value })

const messageFilters: Readonly<Record<string, Values>> = {
  status: { most: "FAILED", few: "CANCELLED", none: "DEAD_LETTER" },
  // The last was used once, and nothing is left of it.
  channel: { most: "webhook", few: "http", none: "whatsapp" },
  to: of("to"),
  eventType: of("type"),
  dossierId: of("dossier"),
  correlationId: of("correlation"),
  createdAfter: { most: inMillis(-1e12), none: inMillis(1e9) },
  createdBefore: { most: inMillis(1e9), none: inMillis(-1e12) },
  updatedAfter: { most: inMillis(-1e12), none: inMillis(1e9) },
  idempotencyKey: { few: "key", none: "none" },
  metadata: { most: entry("most"), some: entry("some"), few: entry("few"), none: entry("none") },
  errorCode: of("error"),
  attempts: { most: 1, few: 7, none: 9 }
}
const deadFilters: Readonly<Record<string, Values>> = {
  to: messageFilters["to"]!,
  channel: messageFilters["channel"]!,
  errorCode: messageFilters["errorCode"]!,
  after: messageFilters["createdAfter"]!,
  before: messageFilters["createdBefore"]!,
  dismissed: { most: false, few: true }
}

interface List {
  /** Whatever the server believes of the tables. Otherwise its statistics must be right: two indexes give the same order. */
  readonly whatever?: true
  readonly filters: Readonly<Record<string, Values>>
  readonly ask: Readonly<Record<string, Ask>>
}

const lists: Readonly<Record<string, List>> = {
  "/outbound/messages": {
    whatever: true,
    filters: messageFilters,
    ask: {
      "an org": (filter) => Effect.flatMap(MessageViews, ({ list }) => list(acme, filter, page)),
      "all orgs": (filter) => Effect.flatMap(MessageViews, ({ list }) => list(null, filter, page))
    }
  },
  "/dead-letters": {
    whatever: true,
    filters: deadFilters,
    ask: {
      "an org": (filter) => Effect.flatMap(MessageViews, ({ deadLetters }) => deadLetters(acme, filter, page)),
      "all orgs": (filter) => Effect.flatMap(MessageViews, ({ deadLetters }) => deadLetters(null, filter, page))
    }
  },
  "/audit": {
    filters: {
      operation: { most: "CREATED", few: "CANCELLED", none: "ERASED" },
      actor: of("actor"),
      correlationId: of("correlation"),
      dossierId: of("dossier"),
      messageId: { none: ID },
      channel: messageFilters["channel"]!,
      from: messageFilters["createdAfter"]!,
      to: messageFilters["createdBefore"]!
    },
    ask: { "an org": (filter) => Effect.flatMap(AuditTrail, ({ list }) => list(acme, filter, page)) }
  },
  "/events": {
    filters: {
      eventType: of("type"),
      correlationId: of("correlation"),
      dossierId: of("dossier"),
      createdAfter: messageFilters["createdAfter"]!,
      createdBefore: messageFilters["createdBefore"]!
    },
    ask: {
      "an org": (filter) => reads(({ list }) => list(acme, filter, page))
    }
  },
  "/events/{id}/messages": {
    filters: {},
    ask: { "an event": () => reads(({ messagesOf }) => messagesOf(EventId.make(ID), page)) }
  },
  "/event-types": {
    filters: { archived: { most: true, none: false } },
    ask: {
      "an org": ({ archived = false }) =>
        Effect.flatMap(EventTypes, ({ list }) => list(acme, archived as boolean, page))
    }
  },
  "/replays": { filters: {}, ask: { "an org": () => Effect.flatMap(Replays, ({ list }) => list(acme, page)) } },
  "/erasures": { filters: {}, ask: { "an org": () => Effect.flatMap(Erasures, ({ list }) => list(acme, page)) } },
  "/circuits": {
    filters: {},
    ask: { "an org": () => Effect.flatMap(Destinations, ({ list }) => list(acme, {}, page)) }
  },
  "/alert-targets": {
    filters: {},
    ask: { "an org": () => Effect.flatMap(Destinations, ({ list }) => list(acme, { alerting: true }, page)) }
  },
  // By what waits or by the oldest, it is counted for each of the org's.
  "/destinations": {
    filters: {
      sort: { most: "id" },
      channel: messageFilters["channel"]!,
      paused: { most: false, none: true },
      circuit: { most: "CLOSED", none: "OPEN" },
      waiting: { most: false, none: true }
    },
    ask: {
      "an org": ({ sort: _, ...filter }) => Effect.flatMap(Backlogs, ({ list }) => list(acme, filter, "id", page)),
      "all orgs": ({ sort: _, ...filter }) => Effect.flatMap(Backlogs, ({ list }) => list(null, filter, "id", page))
    }
  },
  // As `/http-targets` is, and each other channel's own.
  "/{channel}": {
    filters: {},
    ask: {
      "an org": () =>
        Effect.flatMap(Destinations, ({ list }) => list(acme, { channel: ChannelName.make("http") }, page))
    }
  },
  "/dossiers/{id}/activity": {
    filters: {},
    ask: { "an org": () => Effect.flatMap(Timelines, ({ list }) => list(acme, "dossier", page)) }
  }
}

/** Lists that read as much as there is of what they say here. */
const wholes: Readonly<Record<string, string>> = {
  "/outbound/messages/{id}/events": "the facts of one message",
  "/outbound/messages/{id}/attempts": "the facts of one message",
  "/streams/{stream}": "the facts of one stream",
  "/api-keys": "the keys of the org, and for the operator of all",
  "/orgs": "for the operator: a row of each destination, each key and each org",
  "/set-aside": "for the operator: what is set aside"
}

/** Of a name of what most have, few have and none has. */
const oneOf = (name: string) => `case when n > ${ROWS - FEW} then '${name}-few' else '${name}' end`

const fill = `
  insert into projection (name) values ('audit'), ('activity') on conflict do nothing;
  alter table message_view set (autovacuum_enabled = off);
  alter table audit set (autovacuum_enabled = off);
  alter table publication set (autovacuum_enabled = off);
  insert into message_view (id, generation, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id,
      created_at, ended_at, ends_at, error_code, entries, view)
    select gen_random_uuid(), 1, org, 1, status, case when n > ${ROWS - FEW} then 'http' else 'webhook' end,
      ${oneOf("to")}, ${oneOf("type")}, ${oneOf("dossier")}, ${oneOf("correlation")}, at, at,
      case when status = 'QUEUED' then at end, case when status = 'FAILED' then ${oneOf("error")} end,
      array[md5(concat_ws(e'\\x1f', org, 'order', case when n > ${ROWS - FEW} then 'few' when n <= 1900 then 'some' else 'most' end))::uuid],
      json_build_object('attempts', case when n > ${ROWS - FEW} then 7 else 1 end, 'updatedAt', at, 'createdAt', at, 'endedAt', at,
        'id', n, 'dismissed', case when n > ${ROWS - FEW} then true end, 'text', repeat('x', 300))
    from (
      select n, case when n % 100 = 0 then 'other-' || n % 1000 else 'acme' end as org, now() - n * interval '1 second' as at,
        case when n > ${ROWS - 2} then 'CANCELLED' when n % 3 = 0 then 'FAILED' when n % 8 = 0 then 'QUEUED' else 'DELIVERED' end as status
      from generate_series(1, ${ROWS}) n order by md5(n::text)
    ) made;
  insert into idempotency (org_id, key, message_id, request_hash, at)
    select 'acme', 'key', id, 'h', now() from message_view where org_id = 'acme' limit 1;
  insert into message_count (generation, org_id, channel, status, count)
    select generation, org_id, channel, status, count(*) from message_view group by 1, 2, 3, 4;
  insert into message_count (generation, org_id, channel, status, count) values (1, 'acme', 'whatsapp', 'DELIVERED', 0);
  insert into audit (generation, stream_id, version, org_id, at, operation, subject_type, subject_id, channel, actor, correlation_id, dossier_id, details)
    select 1, gen_random_uuid(), 1, 'acme', now() - n * interval '1 second', case when n > ${ROWS - FEW} then 'CANCELLED' else 'CREATED' end,
      'message', n::text, case when n > ${ROWS - FEW} then 'http' else 'webhook' end, ${oneOf("actor")}, ${oneOf("correlation")},
      ${oneOf("dossier")}, '{}' from (select n from generate_series(1, ${ROWS}) n order by md5(n::text)) made;
  insert into publication (id, org_id, stream_id, at, event_type, correlation_id, dossier_id)
    select gen_random_uuid(), 'acme', gen_random_uuid(), now() - n * interval '1 second', ${oneOf("type")}, ${oneOf("correlation")},
      ${oneOf("dossier")} from (select n from generate_series(1, ${ROWS}) n order by md5(n::text)) made;
  insert into destination (id, org_id, channel, version, settings, secrets, created_at, updated_at)
    select gen_random_uuid(), 'acme', 'webhook', 1, '{}', '{}', now(), now() from generate_series(1, ${ROWS}) n;
  insert into event_type (id, org_id, name, version, enforce, created_at, updated_at, archived_at)
    select gen_random_uuid(), 'acme', n::text, 1, false, now(), now(), now() from generate_series(1, ${ROWS}) n;
  insert into replay (id, org_id, selection, requested_at, matched, next_at)
    select gen_random_uuid(), 'acme', '{}', now(), 0, 'infinity' from generate_series(1, ${ROWS}) n;
  insert into erasure (id, org_id, by_field, requested_at, next_at)
    select gen_random_uuid(), 'acme', 'dossierId', now(), now() from generate_series(1, ${ROWS}) n;
  insert into fan_out (event_id, destination, message_id)
    select '${ID}', gen_random_uuid(), gen_random_uuid() from generate_series(1, ${ROWS}) n;
  insert into activity (generation, stream_id, version, org_id, dossier_id, at, activity, channel, details)
    select 1, gen_random_uuid(), 1, 'acme', 'dossier', now(), 'MESSAGE_CREATED', 'webhook', '{}' from generate_series(1, ${ROWS}) n;`
const tables = [
  "message_view",
  "audit",
  "publication",
  "destination",
  "event_type",
  "replay",
  "erasure",
  "fan_out",
  "activity"
]
const analyze = `analyze ${tables.join(", ")}, message_count, idempotency;`

/** What the server believes of the tables. */
const beliefs = {
  "statistics that are right": `${fill}${analyze}`,
  "no statistics": fill,
  "statistics of empty tables": `${analyze}${fill}`
} as const

const scope = Scope.makeUnsafe()
let client: pg.Client

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<Node>
}
const nodesIn = (node: Node): ReadonlyArray<Node> => [node, ...(node.Plans ?? []).flatMap(nodesIn)]

/** The plan of what is asked first, as the server ran it. */
const planOf = async (ask: ReturnType<Ask>): Promise<Node> => {
  const asked: Array<{ readonly text: string; readonly values: ReadonlyArray<unknown> }> = []
  const query = ({ text }: { readonly text: string }, values: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      asked.push({ text, values })
      return []
    })
  const ways = { query, rows: query }
  const postgres = Layer.succeed(
    Postgres,
    Object.fromEntries(["reads", "derived", "queue", "durable", "lookups", "bulk"].map((pool) => [pool, ways])) as never
  )
  const ports = Layer.mergeAll(
    PostgresMessageViews.layer,
    PostgresAuditTrail.layer,
    PostgresBacklogs.layer,
    PostgresDestinations.layer({ encryptionKey: Redacted.make(new Uint8Array(32)) }),
    PostgresErasures.layer({ streams: "here" }),
    PostgresEventTypes.layer,
    PostgresReplays.layer,
    PostgresTimelines.layer
  ).pipe(Layer.provide(Layer.succeed(SealedTexts, {} as never)), Layer.provideMerge(postgres))
  await Effect.runPromiseExit(Effect.provide(ask, ports))
  const [{ text, values }] = asked as [(typeof asked)[number]]
  const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values])
  return rows[0]["QUERY PLAN"][0].Plan as Node
}

/** A stretch, a look at whether an entry is common, and the indexes themselves. */
const BLOCKS_MAX = 1.5 * STRETCH

/** Every filter alone, with all that it is tried with, and every two of them: what most have beside what none has. */
const filtersOf = (filters: List["filters"]): ReadonlyArray<Filter> => {
  const fields = Object.entries(filters)
  const singles = fields.flatMap(([field, values]) => Object.values(values).map((value) => ({ [field]: value })))
  const pairs = fields.flatMap(([one, { most }]) =>
    fields.flatMap(([other, { none }]) =>
      one === other || most === undefined || none === undefined ? [] : [{ [one]: most, [other]: none }]
    )
  )
  return [{}, ...singles, ...pairs]
}

describe.each(Object.entries(beliefs))("with %s", (belief, prepare) => {
  beforeAll(async () => {
    const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
    client = new pg.Client({ connectionString: url, options: "-c search_path=posthaste -c jit=off" })
    await client.connect()
    await client.query(prepare)
  }, 120_000)

  afterAll(() => client.end())

  const asked = Object.entries(lists)
    .flatMap(([list, { filters, ask, whatever = false }]) =>
      Object.entries(ask).map(([whose, of]) => ({ list, whose, of, filters, whatever }))
    )
    .filter(({ whatever }) => whatever || belief === "statistics that are right")
  it.each(asked)(
    "$list of $whose touches a bounded number of blocks with each filter and each two",
    async ({ of, filters }) => {
      const beyond: Array<unknown> = []
      for (const filter of filtersOf(filters)) {
        const plan = await planOf(of(filter))
        const blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        const scanned = nodesIn(plan).filter(
          (node) => node["Node Type"] === "Seq Scan" && tables.includes(node["Relation Name"] ?? "")
        )
        if (blocks > BLOCKS_MAX || scanned.length > 0) beyond.push({ filter, blocks, scanned: scanned.length })
      }
      expect(beyond.slice(0, 3)).toEqual([])
    },
    600_000
  )
})

describe("the routes", () => {
  it("offer no filter that is not tried here", () => {
    const { paths } = OpenApi.fromApi(Api)
    const offered = Object.fromEntries(
      Object.entries(paths).flatMap(([path, { get }]) => {
        const names = (get?.parameters ?? []).flatMap((parameter) =>
          "in" in parameter && parameter.in === "query" ? [parameter.name] : []
        )
        return names.includes("limit")
          ? [[path.replace("/api/v1", ""), names.filter((name) => name !== "limit" && name !== "cursor")]]
          : []
      })
    )
    const tried = { ...lists, ...Object.fromEntries(Object.keys(wholes).map((path) => [path, null])) }
    expect(Object.keys(offered).filter((path) => !(path in tried))).toEqual([])
    for (const [path, names] of Object.entries(offered)) {
      if (!(path in wholes))
        expect({ [path]: Object.keys(lists[path]!.filters).toSorted() }).toEqual({ [path]: names.toSorted() })
    }
  })
})
