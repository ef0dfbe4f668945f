/** Messages that were set aside, and their way out of a batch (`put_aside`). Their way back is `mend_queue`. */
import type { DateTime } from "effect"
import { Effect, Layer } from "effect"
import {
  type LookedAt,
  PAUSES_MS,
  SetAside,
  type SetAsideMessage,
  type SetAsideReason,
  type SetAsideStream,
  type Unprocessable
} from "../../../application/ports/SetAside.ts"
import type { DestinationId, MessageId, OrgId } from "../../../domain/ids.ts"
import { messageOf } from "../../../domain/streams.ts"
import { pageOf } from "../filtering.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"

const DETAIL_MAX = 1_000

const putStatement = prepared`select put_aside($1::uuid, $2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::int[])`
const forgetStatement = prepared`delete from set_aside where again_at is null and tried_at < clock_timestamp() - interval '1 day'`
const dueStatement = prepared`update set_aside s set again_at = clock_timestamp() + interval '1 minute'
    where s.message_id in (
      select d.message_id from set_aside d where d.again_at <= clock_timestamp() order by d.again_at limit $1 for update skip locked)
    returning s.message_id`
const columns = `message_id as "messageId", org_id as "orgId", lane, reason, detail, since, tries, again_at as "againAt"`
const findStatement = prepared`select ${columns} from set_aside where message_id = any ($1::uuid[]) and again_at is not null`
// Where the queue can't process it nor a reader of the log, the queue says why.
const listStatement = prepared`with asides as (
    select 'message-' || message_id as stream, 'queue' as part, org_id, lane, reason, detail, since, tries, again_at
      from set_aside where again_at is not null
    union all
    select p.stream, 'log', null, null, p.reason, '', p.at, 1, p.at from parked p
  )
  select stream, array_agg(distinct part order by part) as parts, max(org_id) as "orgId", max(lane::text) as lane,
    (array_agg(reason order by part <> 'queue', since))[1] as reason, (array_agg(detail order by part <> 'queue', since))[1] as detail,
    min(since) as since, max(tries) as tries, min(again_at) as "againAt"
  from asides where $1::text is null or stream collate "C" > $1::text collate "C"
  group by stream order by stream collate "C" limit $2`
const tryAgainStatement = unprepared`update set_aside set again_at = clock_timestamp()
    where again_at is not null and ($1::uuid[] is null or message_id = any ($1::uuid[])) returning message_id`
const lookedAtStatement = prepared`select message_id as "messageId", version from set_aside
    where again_at is not null and ($1::uuid is null or message_id > $1) order by message_id limit $2`
const endStatement = prepared`delete from set_aside s using unnest($1::uuid[], $2::int[]) u(message, version)
    where s.message_id = u.message and s.version is not distinct from u.version and s.again_at is not null`

interface Row {
  readonly messageId: string
  readonly orgId: string | null
  readonly lane: string | null
  readonly reason: string
  readonly detail: string
  readonly since: DateTime.Utc
  readonly tries: number
  readonly againAt: DateTime.Utc
}

const foundIn = (row: Row): SetAsideMessage => ({
  ...row,
  messageId: row.messageId as MessageId,
  orgId: row.orgId as OrgId | null,
  lane: row.lane as DestinationId | null,
  reason: row.reason as SetAsideReason
})

interface StreamRow extends Omit<Row, "messageId"> {
  readonly stream: string
  readonly parts: ReadonlyArray<string>
}

const streamIn = (row: StreamRow): SetAsideStream => ({
  ...row,
  messageId: messageOf(row.stream),
  orgId: row.orgId as OrgId | null,
  lane: row.lane as DestinationId | null,
  reason: row.reason as SetAsideReason
})

export const layer = Layer.effect(
  SetAside,
  Effect.gen(function* () {
    const { durable, queue, lookups, reads } = yield* Postgres

    // Durable: its worker crosses these messages off, and will release the batch without them.
    const put = (batch: string | null, messages: ReadonlyArray<Unprocessable>) =>
      messages.length === 0
        ? Effect.void
        : unavailable(
            durable.rows(putStatement, [
              batch,
              literal(messages.map(({ messageId }) => messageId)),
              messages.map(({ orgId }) => orgId),
              messages.map(({ lane }) => lane),
              messages.map(({ reason }) => reason),
              messages.map(({ detail }) => detail.replaceAll("\u0000", "\ufffd").slice(0, DETAIL_MAX)),
              literal(PAUSES_MS),
              messages.map(({ version }) => version)
            ])
          ).pipe(Effect.asVoid)

    const due = Effect.fnUntraced(function* (limit: number) {
      yield* unavailable(queue.rows(forgetStatement, []))
      const rows = yield* unavailable(queue.rows(dueStatement, [limit]))
      return rows.map(([id]) => id as MessageId)
    })

    return SetAside.of({
      put,
      due,
      find: (ids) =>
        reading(
          lookups.query<Row>(findStatement, [ids]),
          (rows) => new Map(rows.map((row) => [row.messageId as MessageId, foundIn(row)]))
        ),
      list: ({ cursor, limit }) =>
        reading(reads.query<StreamRow>(listStatement, [cursor, limit + 1]), (rows) =>
          pageOf(rows, { cursor, limit }, streamIn, ({ stream }) => stream)
        ),
      tryAgain: (ids) => reading(durable.rows(tryAgainStatement, [ids]), (rows) => rows.length),
      lookedAt: (after, limit) =>
        reading(queue.query<LookedAt>(lookedAtStatement, [after, limit]), (messages) => ({
          messages,
          next: messages.length < limit ? null : messages.at(-1)!.messageId
        })),
      end: (messages) =>
        unavailable(
          queue.rows(endStatement, [messages.map(({ messageId }) => messageId), messages.map(({ version }) => version)])
        ).pipe(Effect.asVoid)
    })
  })
)
