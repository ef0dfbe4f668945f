/**
 * Events: `publish_events` commits fact, key, body and messages together; `subscription`, kept by a trigger, has the destinations that
 * want an event.
 */
import { DateTime, Effect, Layer, Result, Schema } from "effect"
import { type EventFilter, Events, type NewEvent, type PublishResult } from "../../../application/ports/Events.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { RetryPolicy } from "../../../domain/delivery/retry.ts"
import { journalOf, viewOf } from "../../../domain/event/event.ts"
import { wishesFulfilledBy } from "../../../domain/event/eventTypes.ts"
import { fromRecorded, toRecorded } from "../../../domain/event/facts.ts"
import type { DestinationId, EventId, MessageId, OrgId } from "../../../domain/ids.ts"
import { keptActor } from "../../../domain/recorded.ts"
import { boundedRows, pageOfRows, searched, within } from "../boundedPages.ts"
import { beyond, type Page, pageOf } from "../filtering.ts"
import { groupCommit } from "../groupCommit.ts"
import { type Connections, Postgres, prepared, type QueryFailed, reading, unavailable } from "../Postgres.ts"
import { appendParameters, appendValues, weightOfText } from "../store/append.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

const matchingStatement = prepared`select id, channel, retry from matching_destinations($1, $2)`
const publishStatement = prepared`select event, other, hash from publish_events($1, ${appendParameters(2)})`
const publishedUnderStatement = prepared`select event_id, request_hash from event_idempotency where org_id = $1 and key = $2`
const messagesStatement = prepared`select destination, message_id from fan_out
    where event_id = $1 and ($2::uuid is null or destination > $2) order by event_id, destination limit $3`
const bodyStatement = prepared`select body from shared_body where event_id = $1 and held`
const eraseStatement = prepared`select erase_event_bodies($1)`

const columns = `p.id, p.at, (extract(epoch from p.at) * 1000)::bigint as ms, facts.names, facts.data, to_json(p.at) #>> '{}' as place`
const facts = `cross join lateral (
      select json_agg(e.name order by e.version) as names, json_agg(json_build_array(e.data::text, d.data::text) order by e.version) as data
      from event e left join detail d on d.stream_id = e.stream_id and d.version = e.version where e.stream_id = p.stream_id
    ) facts`
/** Reads one row for each type, by the index. */
const typesStatement = prepared`with recursive type as (
      (select p.event_type from publication p where p.org_id = $1 order by p.event_type limit 1)
      union all
      select (
        select p.event_type from publication p where p.org_id = $1 and p.event_type > type.event_type
        order by p.event_type limit 1
      ) from type where type.event_type is not null
    ) select event_type from type where event_type is not null`

type EventRow = ReadonlyArray<string | null>

const eventOf = ([id, at, names, data]: EventRow) => {
  const texts = JSON.parse(data!) as ReadonlyArray<readonly [data: string, forgettable: string | null]>
  const facts = (JSON.parse(names!) as ReadonlyArray<string>).map((name, nth) =>
    Result.getOrThrow(fromRecorded({ name, data: texts[nth]![0], forgettable: texts[nth]![1] }))
  )
  return viewOf(id as EventId, DateTime.makeUnsafe(Number(at)), facts)!
}
const placeOf = (row: EventRow) => `${row[4]}/${row[0]}`
const lookedEvent = (row: EventRow) => ({ row, wanted: row[5] === "t", cut: row[6] === "t" })

const decodeRetry = Schema.decodeUnknownSync(RetryPolicy)

/** A `published_event`. */
export const publishedEvent = ({ id, fact, at, actor, body, idempotency }: NewEvent) => ({
  id,
  stream_id: streamIdOf(journalOf(id)),
  org: fact.orgId,
  event_type: fact.eventType,
  correlation: fact.correlationId,
  dossier: fact.dossierId,
  key: idempotency?.key ?? null,
  hash: idempotency?.requestHash ?? null,
  at_ms: DateTime.toEpochMillis(at),
  actor: keptActor(actor),
  whole_actor: keptActor(actor) === actor ? null : actor,
  ...toRecorded(fact),
  body
})

export const weightOf = ({ messages, body }: NewEvent): number => 1 + messages.length + weightOfText(body)
/** Enough for every batch of `publishEvents`; a heavier event goes alone. */
const WEIGHT_MAX = 4_000

const isRow = (row: ReadonlyArray<string | null>): row is readonly [string, string, string | null] => row[0] !== null

/**
 * Publishes by a statement that writes all events, or none and names those whose keys were used: the others go again without them. A key
 * taken in the same moment fails the statement, and the next one finds it.
 */
export const publishingBy = (
  run: (events: ReadonlyArray<NewEvent>) => Effect.Effect<ReadonlyArray<ReadonlyArray<string | null>>, QueryFailed>
) => {
  const publish = Effect.fnUntraced(function* (
    events: ReadonlyArray<NewEvent>
  ): Effect.fn.Return<ReadonlyArray<PublishResult>, QueryFailed> {
    const used = new Map<string, PublishResult>()
    for (let left = events; left.length > 0; left = events.filter(({ id }) => !used.has(id))) {
      const rows = yield* Effect.retry(run(left), { times: 1, while: ({ code }) => code === UNIQUE_VIOLATION })
      const refused = rows.filter(isRow)
      if (refused.length === 0) break
      for (const [id, other, requestHash] of refused) {
        if (requestHash !== null) {
          used.set(id, { type: "DuplicateKey", eventId: other as EventId, requestHash })
        } else if (!used.has(id)) used.set(id, { type: "AlreadyThere" })
      }
    }
    return events.map(({ id }): PublishResult => used.get(id) ?? { type: "Published" })
  })
  return groupCommit<NewEvent, PublishResult>({
    // The second event with one key finds the first.
    keyOf: ({ id, fact, idempotency }) => (idempotency === null ? id : `${fact.orgId} ${idempotency.key}`),
    atOnce: 1,
    max: WEIGHT_MAX,
    weightOf,
    run: publish
  })
}

const UNIQUE_VIOLATION = "23505"

const readsOf = ({
  durable,
  lookups,
  reads
}: {
  readonly durable: Connections
  readonly lookups: Connections
  readonly reads: Connections
}) => ({
  matching: (orgId: OrgId, eventType: string) =>
    reading(lookups.rows(matchingStatement, [orgId, wishesFulfilledBy(eventType)]), (rows) =>
      rows.map(([id, channel, retry]) => ({
        destination: id as DestinationId,
        channel: channel!,
        retry: retry == null || retry === "null" ? null : decodeRetry(JSON.parse(retry))
      }))
    ),
  publishedUnder: (orgId: OrgId, key: string) =>
    reading(lookups.rows(publishedUnderStatement, [orgId, key]), ([row]) =>
      row === undefined ? null : { eventId: row[0] as EventId, requestHash: row[1]! }
    ),
  list: (orgId: OrgId, filter: EventFilter, page: Page) => {
    const values: Array<unknown> = [orgId]
    const { found, wanted } = searched(filter, conditions, values)
    const where = ["org_id = $1", ...found, ...beyond("at, id", ["timestamptz", "uuid"], page, values)].join(" and ")
    const order = "at desc, id desc"
    const rows = (most: number) => `select * from publication where ${where} order by ${order} limit ${most}`
    const looked = boundedRows({ rows, wanted, order, columns: "id, stream_id, at" }, page)
    const withFacts = `select ${columns}, p.wanted, p.cut from (${looked}) p ${facts}`
    const text = within(withFacts, { order, columns: "id, ms, names, data, place", size: "octet_length(data::text)" })
    return reading(reads.rows({ text }, values), (rows) =>
      pageOfRows(
        rows.map(lookedEvent),
        page,
        ({ row }) => eventOf(row),
        ({ row }) => placeOf(row)
      )
    )
  },
  messagesOf: (id: EventId, page: Page) =>
    reading(reads.rows(messagesStatement, [id, page.cursor, page.limit + 1]), (rows) =>
      pageOf(
        rows,
        page,
        ([_, message]) => message as MessageId,
        ([destination]) => destination!
      )
    ),
  body: (id: EventId) => reading(lookups.rows(bodyStatement, [id]), ([row]) => row?.[0] ?? null),
  erase: (id: EventId) => unavailable(durable.rows(eraseStatement, [id])).pipe(Effect.asVoid),
  types: (orgId: OrgId) => reading(reads.rows(typesStatement, [orgId]), (rows) => rows.map(([type]) => type!))
})

const conditions = {
  ranges: [
    ["createdAfter", "at >"],
    ["createdBefore", "at <"]
  ],
  indexed: [
    ["correlationId", "correlation_id ="],
    ["dossierId", "dossier_id ="],
    ["eventType", "event_type ="]
  ],
  others: []
} as const satisfies Readonly<Record<string, ReadonlyArray<readonly [keyof EventFilter, string]>>>

export const layer = Layer.effect(
  Events,
  Effect.gen(function* () {
    const postgres = yield* Postgres
    const pulse = yield* Pulse
    const publish = yield* publishingBy((events) =>
      postgres.appends
        .rows(publishStatement, [
          JSON.stringify(events.map(publishedEvent)),
          ...appendValues(events.flatMap(({ messages }) => messages))
        ])
        .pipe(Effect.tap((rows) => (rows.every(isRow) ? pulse.wake("log") : pulse.wake("queue", "log"))))
    )
    return Events.of({ ...readsOf(postgres), publish: (events) => unavailable(publish(events)) })
  })
)
