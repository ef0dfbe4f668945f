import { Effect, Layer } from "effect"
import type { UsedKey } from "../../../application/ports/EventStore.ts"
import { type DataOfEvent, type DataOfMessage, MessageData } from "../../../application/ports/MessageData.ts"
import type { EventId, MessageId, OrgId } from "../../../domain/ids.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { storedText } from "./append.ts"

const loadStatement = prepared`select a.id, m.body, k.org_id, k.key, k.request_hash,
      (select json_agg(json_build_object('version', d.version, 'epoch', d.epoch, 'attempt', d.attempt, 'body', d.body, 'headers', d.headers)
          order by d.version)
        from detail d where d.stream_id = a.id and d.body is not null), m.event_id, m.data
    from unnest($1::uuid[]) a(id)
    left join message m on m.id = a.id
    left join idempotency k on k.message_id = a.id`
const restoreStatement = prepared`with messages as (
      insert into message (id, org_id, channel, destination, recipient, event_type, dossier_id, correlation_id, metadata, accepted_at, data, body, event_id)
        select u.id, q."orgId", q.channel, q.destination, q."to", q."eventType", q."dossierId", q."correlationId", q.metadata,
          q."acceptedAt", u.data::json, u.body, u.event
        from unnest($1::uuid[], $2::text[], $10::uuid[], $12::text[]) u(id, body, event, data)
          cross join lateral json_to_record(u.data::json) q("orgId" text, channel text, destination uuid, "to" text, "eventType" text,
            "dossierId" text, "correlationId" text, metadata jsonb, "acceptedAt" timestamptz)
        where u.data is not null
      on conflict do nothing
    ), keys as (
      insert into idempotency (org_id, key, message_id, request_hash)
        select u.org, u.key, u.id, u.hash
        from unnest($1::uuid[], $3::text[], $4::text[], $5::text[]) u(id, org, key, hash) where u.key is not null
      on conflict do nothing
    )
    insert into detail (stream_id, version, epoch, attempt, body, headers)
      select u.id, u.version, u.epoch, u.attempt, u.body, u.headers::json
      from unnest($6::uuid[], $13::int[], $7::int[], $8::int[], $9::text[], $11::text[]) u(id, version, epoch, attempt, body, headers)
    on conflict do nothing`

const loadEventsStatement = prepared`select a.id, s.body, k.org_id, k.key, k.request_hash
    from unnest($1::uuid[]) a(id)
    left join shared_body s on s.event_id = a.id and s.held
    left join event_idempotency k on k.event_id = a.id`
const restoreEventsStatement = prepared`with keys as (
      insert into event_idempotency (org_id, key, event_id, request_hash)
        select u.org, u.key, u.id, u.hash from unnest($1::uuid[], $3::text[], $4::text[], $5::text[]) u(id, org, key, hash)
        where u.key is not null
      on conflict do nothing
    )
    insert into shared_body (event_id, body)
      select u.id, u.body from unnest($1::uuid[], $2::text[]) u(id, body) where u.body is not null
    on conflict do nothing`

type Row = ReadonlyArray<string | null>

const dataOf = ([id, body, org, key, hash, answers, event, queued]: Row): DataOfMessage | null => {
  if (queued == null && key == null && answers == null) return null
  return {
    messageId: id as MessageId,
    queued: queued ?? null,
    body: body ?? null,
    bodyOf: (event ?? null) as EventId | null,
    key: usedKeyOf(org, key, hash),
    responses: answers == null ? [] : (JSON.parse(answers) as DataOfMessage["responses"])
  }
}

const usedKeyOf = (
  org: string | null | undefined,
  key: string | null | undefined,
  hash: string | null | undefined
): UsedKey | null => (key == null ? null : { orgId: org as OrgId, key, requestHash: hash! })

export const layer = Layer.effect(
  MessageData,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres

    const load = (ids: ReadonlyArray<MessageId>) =>
      reading(
        reads.rows(loadStatement, [literal(ids)]),
        (rows) => new Map(rows.map(dataOf).flatMap((data) => (data === null ? [] : [[data.messageId, data] as const])))
      )

    const restore = (dataOfMessages: ReadonlyArray<DataOfMessage>) => {
      const answers = dataOfMessages.flatMap(({ messageId, responses }) =>
        responses.map((response) => ({ messageId, ...response, body: storedText(response.body) }))
      )
      return unavailable(
        durable.rows(restoreStatement, [
          dataOfMessages.map(({ messageId }) => messageId),
          dataOfMessages.map(({ body }) => body),
          dataOfMessages.map(({ key }) => key?.orgId ?? null),
          dataOfMessages.map(({ key }) => key?.key ?? null),
          dataOfMessages.map(({ key }) => key?.requestHash ?? null),
          answers.map(({ messageId }) => messageId),
          answers.map(({ epoch }) => epoch),
          answers.map(({ attempt }) => attempt),
          answers.map(({ body }) => body),
          dataOfMessages.map(({ bodyOf }) => bodyOf),
          answers.map(({ headers }) => (headers === null ? null : JSON.stringify(headers))),
          dataOfMessages.map(({ queued }) => queued),
          answers.map(({ version }) => version)
        ])
      ).pipe(Effect.asVoid)
    }

    const loadEvents = (ids: ReadonlyArray<EventId>) =>
      reading(
        reads.rows(loadEventsStatement, [literal(ids)]),
        (rows) =>
          new Map(
            rows
              .filter(([_, body, org]) => body != null || org != null)
              .map(([id, body, orgId, key, requestHash]) => {
                const eventId = id as EventId
                return [eventId, { eventId, body: body ?? null, key: usedKeyOf(orgId, key, requestHash) }] as const
              })
          )
      )

    const restoreEvents = (dataOfEvents: ReadonlyArray<DataOfEvent>) =>
      unavailable(
        durable.rows(restoreEventsStatement, [
          dataOfEvents.map(({ eventId }) => eventId),
          dataOfEvents.map(({ body }) => body),
          dataOfEvents.map(({ key }) => key?.orgId ?? null),
          dataOfEvents.map(({ key }) => key?.key ?? null),
          dataOfEvents.map(({ key }) => key?.requestHash ?? null)
        ])
      ).pipe(Effect.asVoid)

    return MessageData.of({ load, restore, loadEvents, restoreEvents })
  })
)
