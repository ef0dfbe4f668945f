import { DateTime, Duration, Effect, Layer } from "effect"
import { OWN_KEYS } from "../../../application/accept/acceptMessage.ts"
import { CommandedBy } from "../../../application/commandedBy.ts"
import { type Erasure, type ErasureJob, Erasures } from "../../../application/ports/Erasures.ts"
import { type ErasureFact, toRecorded } from "../../../domain/erasure/facts.ts"
import { type EventId, isUuid, type MessageId, type OrgId } from "../../../domain/ids.ts"
import { pageOf } from "../filtering.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"
import { appendToJournalSql, appendToJournalValues } from "../store/appendToJournal.ts"

const columns = `id, org_id as "orgId", by_field as by, reason, messages, events, requested_at as "requestedAt", ended_at as "endedAt"`

const openStatement = prepared`with opened as (
      insert into erasure (id, org_id, by_field, values_sought, reason, requested_at, next_at) values ($1, $2, $3, $4, $5, $6, clock_timestamp())
      returning ${columns}
    )
    select opened.*, ${appendToJournalSql(7)} from opened`
const getStatement = prepared`select ${columns} from erasure where org_id = $1 and id = $2`
const listStatement = prepared`select ${columns} from erasure
    where org_id = $1 and ($2::uuid is null or id < $2) order by id desc limit $3`
const takeStatement = prepared`update erasure set next_at = clock_timestamp() + $1::int * interval '1 ms'
    where id = (select id from erasure where ended_at is null and next_at <= clock_timestamp()
      order by next_at limit 1 for update skip locked)
    returning ${columns}, values_sought as sought`
const backStatement = prepared`update erasure set next_at = clock_timestamp() + $2::int * interval '1 ms' where id = $1`
const eraseStatement = unprepared`select erase_streams($1, $2, $3, $4) as done`
const requestsStatement = unprepared`select erase_requests($1, $2, $3, $4) as done`
const closeStatement = prepared`with closed as (
      update erasure set ended_at = $2, values_sought = null where id = $1 and ended_at is null returning id, messages, events
    )
    select ${appendToJournalSql(3)} from closed`

const found = { dossierId: "dossier_id", recipient: "recipient", correlationId: "correlation_id" } as const
const messagesBy = (condition: string) =>
  unprepared`select id from message where org_id = $1 and ${condition} order by id desc limit $3`
const eventsBy = (condition: string) =>
  unprepared`select id from publication where org_id = $1 and ${condition} order by at desc, id desc limit $3`
/** By their keys, see sendAlerts.ts. */
const alertsStatement = unprepared`select i.message_id as id from sought_commands($1, $2, $3) c
    join destination d on d.org_id = $1 and d.alerting is not null
    join idempotency i on i.org_id = $1 and i.key = '${OWN_KEYS}alert:command-' || c.id || ':1:' || d.id limit $4`

export const layer = Layer.effect(
  Erasures,
  Effect.gen(function* () {
    const { durable, reads, bulk } = yield* Postgres

    const factValues = (id: string, fact: ErasureFact, at: DateTime.Utc, actor: string | null) =>
      appendToJournalValues(`erasure-${id}`, [toRecorded(fact)], at, actor)

    return Erasures.of({
      open: Effect.fnUntraced(function* ({ id, orgId, by, reason, sought }) {
        const now = yield* DateTime.now
        const fact = { type: "ErasureRequested", orgId, by, reason } as const
        const facts = factValues(id, fact, now, yield* CommandedBy)
        const values = [id, orgId, by, sought, reason, DateTime.formatIso(now), ...facts]
        const [row] = yield* unavailable(durable.query<Erasure>(openStatement, values))
        return shown(row!)
      }),
      get: (orgId, id) =>
        isUuid(id)
          ? reading(reads.query<Erasure>(getStatement, [orgId, id]), ([row]) => (row === undefined ? null : shown(row)))
          : Effect.succeed(null),
      list: (orgId, { cursor, limit }) =>
        reading(reads.query<Erasure>(listStatement, [orgId, cursor, limit + 1]), (rows) =>
          pageOf(rows, { cursor, limit }, shown, ({ id }) => id)
        ),
      take: (lease) =>
        reading(durable.query<ErasureJob>(takeStatement, [Duration.toMillis(lease)]), ([row]) => row ?? null),
      find: Effect.fnUntraced(function* ({ orgId, by, sought }: ErasureJob, limit: number) {
        const isEntry = by === "metadata"
        const condition = isEntry ? "metadata @> $2::jsonb" : `${found[by]} = any ($2::text[])`
        const values = [orgId, isEntry ? JSON.stringify({ [sought[0]!]: sought[1] }) : sought, limit]
        const messages = yield* unavailable(reads.query<{ id: MessageId }>(messagesBy(condition), values))
        const events =
          by === "recipient" ? [] : yield* unavailable(reads.query<{ id: EventId }>(eventsBy(condition), values))
        const alerts = yield* unavailable(reads.query<{ id: MessageId }>(alertsStatement, [orgId, by, sought, limit]))
        const ids = new Set([...messages, ...alerts].map(({ id }) => id))
        return { messages: [...ids].slice(0, limit), events: events.map(({ id }) => id) }
      }),
      erase: Effect.fnUntraced(function* ({ id, orgId }, messages, events) {
        const values = [id, orgId, messages, events]
        const [row] = yield* unavailable(bulk.query<{ done: boolean }>(eraseStatement, values))
        return row!.done
      }),
      back: (id, pause) => Effect.asVoid(unavailable(durable.query(backStatement, [id, Duration.toMillis(pause)]))),
      close: Effect.fnUntraced(function* ({ id, orgId, by, sought }: ErasureJob) {
        const [erased] = yield* unavailable(bulk.query<{ done: boolean }>(requestsStatement, [id, orgId, by, sought]))
        if (!erased!.done) return false
        const now = yield* DateTime.now
        const rows = yield* unavailable(reads.query<Erasure>(getStatement, [orgId, id]))
        const { messages = 0, events = 0 } = rows[0] ?? {}
        const facts = factValues(id, { type: "ErasureCompleted", orgId, messages, events }, now, null)
        yield* unavailable(durable.query(closeStatement, [id, DateTime.formatIso(now), ...facts]))
        return true
      })
    })
  })
)

const shown = ({ id, orgId, by, reason, messages, events, requestedAt, endedAt }: Erasure): Erasure => ({
  id,
  orgId: orgId as OrgId,
  by,
  reason,
  messages,
  events,
  requestedAt,
  endedAt
})
