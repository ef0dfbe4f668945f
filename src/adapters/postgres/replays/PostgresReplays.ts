/** Which messages or events each replay is for, and which replays want work: `replay` and `replay_item`. */
import { DateTime, Duration, Effect, Layer, Schema } from "effect"
import {
  type Opening,
  type ReplayItem,
  type ReplayJob,
  type ReplaySet,
  Replays
} from "../../../application/ports/Replays.ts"
import type { EventId, MessageId, OrgId } from "../../../domain/ids.ts"
import { ReplaySelection } from "../../../domain/replay/facts.ts"
import { pageOf } from "../filtering.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { isDeadLetter } from "./deadLetters.ts"

const columns = `id, org_id as "orgId", selection, reason, matched, requested_at as "requestedAt"`
const getStatement = prepared`select ${columns} from replay where id = $1 and org_id = $2`
const knownStatement = prepared`select ${columns}, request_hash as "requestHash" from replay where org_id = $1 and key = $2`
// Ids are made of the time, so they sort as the requests came.
const listStatement = prepared`select ${columns} from replay where org_id = $1 and ($2::uuid is null or id < $2) order by id desc limit $3`
const itemsStatement = prepared`select message_id as "messageId", epoch, event_id as "eventId" from replay_item where replay_id = $1 and number > $2 order by number limit $3`
const takeStatement = prepared`update replay set next_at = statement_timestamp() + make_interval(secs => $1 / 1000.0)
    where id = (
      select id from replay where next_at <= statement_timestamp() order by next_at limit 1 for update skip locked
    ) and next_at <= statement_timestamp() returning ${columns}`
const backStatement = prepared`update replay set next_at = statement_timestamp() + make_interval(secs => $2 / 1000.0)
    where id = $1 and next_at < 'infinity'`
const closeStatement = prepared`with items as (delete from replay_item where replay_id = $1)
    update replay set next_at = 'infinity' where id = $1`

const encodeSelection = Schema.encodeSync(ReplaySelection)
const decodeSelection = Schema.decodeUnknownSync(ReplaySelection)

interface ItemRow {
  readonly messageId: MessageId | null
  readonly epoch: number
  readonly eventId: EventId | null
}

const itemOf = ({ messageId, epoch, eventId }: ItemRow): ReplayItem =>
  eventId === null ? { messageId: messageId!, epoch } : { eventId }

interface JobRow extends Omit<ReplayJob, "selection"> {
  readonly selection: unknown
}

const jobOf = (row: JobRow): ReplayJob => ({ ...row, selection: decodeSelection(row.selection) })

/** A query for the items: message and epoch, or event, and number. Its parameters are added to the values. */
const itemsIn = (set: ReplaySet, orgId: OrgId, values: Array<unknown>): string => {
  const bound = (value: unknown) => `$${values.push(value)}`
  if ("items" in set) {
    const messages = bound(set.items.map(({ messageId }) => messageId))
    const epochs = bound(set.items.map(({ epoch }) => epoch))
    return `select m.message, m.epoch, null::uuid as event, m.number
      from unnest(${messages}::uuid[], ${epochs}::int[]) with ordinality m(message, epoch, number)`
  }
  if ("missed" in set) {
    const { to, since, eventTypes } = set.missed
    return `select null::uuid as message, null::int as epoch, p.id as event, row_number() over (order by p.at, p.id) as number
      from publication p
      where p.org_id = ${bound(orgId)} and p.event_type = any (${bound(eventTypes)}::text[])
        and p.at >= ${bound(DateTime.formatIso(since))}::timestamptz
        and not exists (select 1 from fan_out f where f.event_id = p.id and f.destination = ${bound(to)}::uuid)
        and exists (select 1 from shared_body s where s.event_id = p.id and s.held)`
  }
  return `select id as message, (view ->> 'epoch')::int as epoch, null::uuid as event,
      row_number() over (order by created_at, id) as number
    from message_view where ${isDeadLetter(orgId, set.filter, values)}`
}

/**
 * Request, key and items in one statement. The key's unique constraint decides which of two racers opened it;
 * the other finds no row of its own and writes no items.
 */
const openQuery = ({ id, orgId, selection, reason, requestedAt, set, idempotency }: Opening) => {
  const values: Array<unknown> = [
    id,
    orgId,
    idempotency?.key ?? null,
    idempotency?.requestHash ?? null,
    JSON.stringify(encodeSelection(selection)),
    reason,
    DateTime.formatIso(requestedAt)
  ]
  const found = itemsIn(set, orgId, values)
  const text = `with found as materialized (${found}),
    opened as (
      insert into replay (id, org_id, key, request_hash, selection, reason, requested_at, matched, next_at)
        select $1, $2, $3, $4, $5, $6, $7, (select count(*) from found), clock_timestamp()
      on conflict do nothing
      returning ${columns}
    ),
    items as (
      insert into replay_item (replay_id, number, message_id, epoch, event_id)
        select o.id, f.number, f.message, f.epoch, f.event from opened o cross join found f
    )
    select * from opened`
  return { text, values }
}

export const layer = Layer.effect(
  Replays,
  Effect.gen(function* () {
    const { bulk, durable, reads } = yield* Postgres

    const open = Effect.fnUntraced(function* (opening: Opening) {
      const { text, values } = openQuery(opening)
      const [opened] = yield* unavailable(bulk.query<JobRow>({ text }, values))
      if (opened !== undefined) return { type: "Opened", job: jobOf(opened) } as const
      const [known] = yield* unavailable(
        durable.query<JobRow & { readonly requestHash: string }>(knownStatement, [
          opening.orgId,
          opening.idempotency?.key ?? null
        ])
      )
      // Without a key there is nothing to collide with but the id, which is new.
      if (known === undefined) return yield* Effect.die(new Error(`a replay with the new id ${opening.id} exists`))
      const { requestHash, ...job } = known
      return { type: "DuplicateKey", job: jobOf(job), requestHash } as const
    })

    return Replays.of({
      open,
      list: (orgId, page) =>
        reading(reads.query<JobRow>(listStatement, [orgId, page.cursor, page.limit + 1]), (rows) =>
          pageOf(rows, page, jobOf, ({ id }) => id)
        ),
      get: (orgId, id) =>
        reading(reads.query<JobRow>(getStatement, [id, orgId]), ([row]) => (row === undefined ? null : jobOf(row))),
      items: (id, after, limit) =>
        reading(reads.query<ItemRow>(itemsStatement, [id, after, limit]), (rows) => rows.map(itemOf)),
      take: (lease) =>
        reading(durable.query<JobRow>(takeStatement, [Duration.toMillis(lease)]), ([row]) =>
          row === undefined ? null : jobOf(row)
        ),
      back: (id, pause) => Effect.asVoid(unavailable(durable.query(backStatement, [id, Duration.toMillis(pause)]))),
      close: (id) => Effect.asVoid(unavailable(bulk.query(closeStatement, [id])))
    })
  })
)
