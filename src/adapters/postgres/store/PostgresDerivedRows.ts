import { DateTime, Effect, Layer, Schema } from "effect"
import {
  type ComparedMessage,
  DerivedRows,
  type ExpectedMessage,
  type Finding,
  type ReadyRow,
  type Restored
} from "../../../application/ports/DerivedRows.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { journalOf } from "../../../domain/event/event.ts"
import type { DestinationId, MessageId } from "../../../domain/ids.ts"
import { ReplaySelection } from "../../../domain/replay/facts.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"
import { streamIdOf } from "./PostgresJournals.ts"

const isoOf = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const liveGeneration = "(select generation from projection where name = 'messages' and live)"
// One statement, hence one snapshot. A batch names settled messages until its release: the version tells which it still holds. A row that
// was put back may carry a later version than the one with which the message began to wait.
const compareStatement = prepared`with asked as materialized (
      select * from unnest($1::uuid[], $2::int[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::int[], $8::int[], $9::int[], $10::boolean[])
        a(id, read, place, lane, line, due_ms, version, epoch, attempt, dead)
    ), held as materialized (
      select m.id, count(*) as n from claim c, unnest(c.messages, c.versions) m(id, version)
      join asked a on a.id = m.id and m.version >= a.version group by m.id
    ), found as materialized (
      select a.*, coalesce(h.n, 0) as held, t.lane as in_lane, t.line as in_line, t.state, (
          -- Times are whole milliseconds, but for rows that were made by hand.
          select count(*) from ready r where r.lane = a.lane and r.message_id = a.id
            and r.due_at >= 'epoch'::timestamptz + a.due_ms * interval '1 millisecond'
            and r.due_at < 'epoch'::timestamptz + (a.due_ms + 1) * interval '1 millisecond'
            and r.version >= a.version and (r.epoch, r.attempt) = (a.epoch, a.attempt)) as ready
      from asked a left join held h on h.id = a.id left join line_entry t on t.message_id = a.id
    )
    select f.id, exists (select from parked p where p.stream = 'message-' || f.id) or case f.place
        when 'Out' then f.state is null or (f.dead and f.state = 'DEAD')
        when 'UnderWay' then f.held > 0 and f.ready = 0
          and (f.line is null and f.state is null or (f.in_lane, f.in_line, f.state) = (f.lane, f.line, 'GIVEN'))
        else case
          when f.line is null then f.state is null and f.held + f.ready = 1
          when (f.in_lane, f.in_line) = (f.lane, f.line) then case f.state when 'WAITING' then f.held + f.ready = 0 when 'GIVEN' then f.held + f.ready = 1 else false end
          else false end
        end, m.body is not null or s.event_id is not null, v.version,
      json_build_object('id', v.id, 'orgId', v.org_id, 'version', v.version, 'status', v.status,
        'channel', v.channel, 'destination', v.destination, 'eventType', v.event_type, 'epoch', v.epoch, 'attempts', v.attempts,
        'createdAt', ${isoOf("v.created_at")}, 'updatedAt', ${isoOf("v.updated_at")}, 'endedAt', ${isoOf("v.ended_at")},
        'endsAt', ${isoOf("nullif(v.ends_at, 'infinity')")}, 'dueAt', ${isoOf("v.due_at")}, 'errorCode', v.error_code,
        'replayId', v.replay_id, 'dismissed', v.dismissed, 'contradicted', v.contradicted)
    from found f left join message m on m.id = f.id left join shared_body s on s.event_id = m.event_id
      left join message_view v on v.generation = ${liveGeneration} and v.id = f.id
    where coalesce((select max(e.version) from event e where e.stream_id = f.id), f.read) = f.read`
const readyStatement = prepared`select lane, floor(extract(epoch from due_at) * 1000)::bigint, message_id, version, epoch, attempt, to_json(due_at) #>> '{}'
    from ready where (lane, due_at, message_id) > ($1::uuid, $2::timestamptz, $3::uuid)
    order by lane, due_at, message_id limit $4`
const turnsStatement = prepared`select message_id from line_entry where message_id > $1 order by message_id limit $2`
const EXAMPLES = "[1:5]"
const isKnown = (id: string) => `(exists (select from event e where e.stream_id = ${id})
      or exists (select from append_intent i where i.message_id = ${id}))`
const unknown = (table: string, id = "message_id") =>
  `select 'message-' || ${id} as what from ${table} where not ${isKnown(id)}`
/** Facts that the list has read. */
const listRead = `(select split_part(p.position, ':', 1)::bigint as tx, split_part(p.position, ':', 2)::bigint as position
      from projection p where p.name = 'messages' and p.live)`
const strayRows: Readonly<Record<string, string>> = {
  "rows of messages without facts": [
    unknown("line_entry"),
    unknown("message", "id"),
    unknown("idempotency"),
    `${unknown("message_view", "id")} and generation = ${liveGeneration}`
  ].join(" union "),
  lines: `select 'lane ' || lane || ', ordering key ' || line as what from (
        select lane, line, state, row_number() over (partition by lane, line order by nth) as place from line_entry) t
      group by lane, line having bool_or(case when place = 1 then state = 'WAITING' else state <> 'WAITING' end)`,
  list: `select 'message-' || e.stream_id as what from ${listRead} r join event e on (e.tx, e.position) <= (r.tx, r.position)
      left join message_view v on v.generation = ${liveGeneration} and v.id = e.stream_id
      where e.stream is null and (v.id is null or v.version < e.version)
        and not exists (select from parked p where p.stream = 'message-' || e.stream_id) group by e.stream_id`,
  counts: `select concat_ws(' ', org_id, channel, status) as what
      from (select * from message_count where generation = ${liveGeneration}) c full join (
        select org_id, channel, status, count(*) from message_view where generation = ${liveGeneration} group by org_id, channel, status
      ) v using (org_id, channel, status) where coalesce(c.count, 0) <> coalesce(v.count, 0)`,
  events: `select e.stream as what from event e where e.name like 'EventPublished@%' and not exists (select from publication p where p.stream_id = e.stream_id)
      union select e.stream from event e join shared_body s on e.stream = 'event-' || s.event_id and s.held where e.name like 'EventErased@%'
      union select 'event-' || s.event_id from shared_body s
        where not s.held and not exists (select from message m where m.event_id = s.event_id)
      union select 'event-' || m.event_id from message m
        where m.event_id is not null and not exists (select from shared_body s where s.event_id = m.event_id)`
}
const straysStatement = unprepared`${Object.entries(strayRows)
  .map(
    ([table, rows]) =>
      `select '${table}', count(*), array_to_json((array_agg(x.what order by x.what))${EXAMPLES}) from (${rows}) x having count(*) > 0`
  )
  .join(" union all ")}`
const restoreStatement = unprepared`select restore_queue($1::uuid[], $2::int[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::int[],
    $8::int[], $9::int[])`
const dropStatement = unprepared`delete from ready r using unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::int[]) u(id, lane, due_ms, version)
    where r.lane = u.lane and r.message_id = u.id and r.version = u.version
      and r.due_at >= 'epoch'::timestamptz + u.due_ms * interval '1 millisecond'
      and r.due_at < 'epoch'::timestamptz + (u.due_ms + 1) * interval '1 millisecond'`
const restoreCircuitsStatement = unprepared`insert into lane as l (lane, ready_at, circuit, generation, failures, blocked_until, in_flight_max, circuit_stream)
    select u.lane, 'infinity', u.circuit, u.generation, u.failures, 'epoch'::timestamptz + u.blocked_ms * interval '1 millisecond',
      u.in_flight_max, u.stream
    from unnest($1::uuid[], $2::text[], $3::int[], $4::int[], $5::bigint[], $6::int[], $7::uuid[])
      u(lane, circuit, generation, failures, blocked_ms, in_flight_max, stream)
    on conflict (lane) do update set circuit = excluded.circuit, generation = excluded.generation, failures = excluded.failures,
      blocked_until = excluded.blocked_until, in_flight_max = excluded.in_flight_max, circuit_stream = excluded.circuit_stream
      where l.generation < excluded.generation`
const restoreReplaysStatement = unprepared`insert into replay (id, org_id, selection, reason, matched, requested_at, next_at)
    select u.id, u.org, u.selection::json, u.reason, u.matched, 'epoch'::timestamptz + u.at_ms * interval '1 millisecond', 'infinity'
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int[], $6::bigint[]) u(id, org, selection, reason, matched, at_ms)
    on conflict do nothing`
const restoreEventsStatement = unprepared`insert into publication (id, stream_id, org_id, event_type, correlation_id, dossier_id, at)
    select u.id, u.stream, u.org, u.type, u.correlation, u.dossier, 'epoch'::timestamptz + u.at_ms * interval '1 millisecond'
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
      u(id, stream, org, type, correlation, dossier, at_ms)
    on conflict do nothing`
const restoreFanOutStatement = unprepared`insert into fan_out (event_id, destination, message_id)
    select * from unnest($1::uuid[], $2::uuid[], $3::uuid[]) on conflict do nothing`

const NOBODY = "00000000-0000-0000-0000-000000000000"

const encodeSelection = Schema.encodeSync(ReplaySelection)

const columnsOf = (messages: ReadonlyArray<ExpectedMessage>) => {
  const waits = messages.map(({ place }) => (place.type === "Out" ? null : place))
  return [
    messages.map(({ messageId }) => messageId),
    messages.map(({ version }) => version),
    messages.map(({ place }) => place.type),
    waits.map((wait) => wait?.lane ?? null),
    waits.map((wait) => wait?.line ?? null),
    waits.map((wait) => wait && DateTime.toEpochMillis(wait.dueAt)),
    waits.map((wait) => wait?.version ?? null),
    waits.map((wait) => wait?.epoch ?? null),
    waits.map((wait) => wait?.attempt ?? null),
    messages.map(({ place }) => place.type === "Out" && place.dead)
  ]
}

const comparedOf = ([, placed, body, version, view]: ReadonlyArray<string | null>): ComparedMessage => ({
  isPlaced: placed === "t",
  hasBody: body === "t",
  listed: version == null ? null : { version: Number(version), row: JSON.parse(view!) }
})

const readyRowOf = (row: ReadonlyArray<string | null>): ReadyRow => ({
  lane: row[0] as DestinationId,
  dueAt: DateTime.makeUnsafe(Number(row[1])),
  messageId: row[2] as MessageId,
  version: Number(row[3]),
  epoch: Number(row[4]),
  attempt: Number(row[5])
})

export const layer = Layer.effect(
  DerivedRows,
  Effect.gen(function* () {
    const { bulk, reads } = yield* Postgres
    const pulse = yield* Pulse
    const ids = (rows: ReadonlyArray<ReadonlyArray<string | null>>) => rows.map(([id]) => id as MessageId)

    const restoreQueue = (rows: ReadonlyArray<Restored>) => {
      const waits = rows.map(({ place }) => (place.type === "Waiting" || place.type === "UnderWay" ? place : null))
      const standing = rows.map(({ place }) => (place.type === "Out" ? null : place))
      return bulk.rows(restoreStatement, [
        rows.map(({ messageId }) => messageId),
        rows.map(({ read }) => read),
        rows.map(({ place }) => place.type),
        standing.map((place) => place?.lane ?? null),
        standing.map((place) => place?.line ?? null),
        waits.map((wait) => (wait === null ? 0 : DateTime.toEpochMillis(wait.dueAt))),
        waits.map((wait) => wait?.version ?? 0),
        waits.map((wait) => wait?.epoch ?? 0),
        waits.map((wait) => wait?.attempt ?? 0)
      ])
    }

    return DerivedRows.of({
      compare: (messages) =>
        messages.length === 0
          ? Effect.succeed(new Map())
          : reading(
              reads.rows(compareStatement, columnsOf(messages)),
              (rows) => new Map(rows.map((row) => [row[0] as MessageId, comparedOf(row)]))
            ),
      strays: reading(bulk.rows(straysStatement, []), (rows) =>
        rows.map(
          ([table, count, examples]): Finding => ({
            ...{ table: table!, count: Number(count), examples: JSON.parse(examples!) }
          })
        )
      ),
      ready: (after, limit) =>
        reading(
          reads.rows(readyStatement, [...(after?.split(" ") ?? [NOBODY, "-infinity", NOBODY]), limit]),
          (rows) => {
            const last = rows.at(-1)
            const next = last === undefined ? null : `${last[0]} ${last[6]} ${last[2]}`
            return { rows: rows.map(readyRowOf), next }
          }
        ),
      messagesInLines: (after, limit) => reading(reads.rows(turnsStatement, [after ?? NOBODY, limit]), ids),
      restoreEvents: (events) =>
        unavailable(
          bulk.rows(restoreEventsStatement, [
            events.map(({ id }) => id),
            events.map(({ id }) => streamIdOf(journalOf(id))),
            events.map(({ fact }) => fact.orgId),
            events.map(({ fact }) => fact.eventType),
            events.map(({ fact }) => fact.correlationId),
            events.map(({ fact }) => fact.dossierId),
            events.map(({ at }) => DateTime.toEpochMillis(at))
          ])
        ).pipe(Effect.asVoid),
      restoreFanOut: (messages) =>
        unavailable(
          bulk.rows(restoreFanOutStatement, [
            messages.map(({ eventId }) => eventId),
            messages.map(({ destination }) => destination),
            messages.map(({ messageId }) => messageId)
          ])
        ).pipe(Effect.asVoid),
      restoreQueue: (rows) =>
        rows.length === 0
          ? Effect.succeed(0)
          : reading(restoreQueue(rows), ([row]) => Number(row![0])).pipe(Effect.tap(() => pulse.wake("queue"))),
      dropReady: (rows) =>
        rows.length === 0
          ? Effect.void
          : Effect.asVoid(
              unavailable(
                bulk.rows(dropStatement, [
                  rows.map(({ messageId }) => messageId),
                  rows.map(({ lane }) => lane),
                  rows.map(({ dueAt }) => DateTime.toEpochMillis(dueAt)),
                  rows.map(({ version }) => version)
                ])
              )
            ),
      restoreCircuits: (circuits) =>
        unavailable(
          bulk.rows(restoreCircuitsStatement, [
            circuits.map(({ destination }) => destination),
            circuits.map(({ state }) => state.status),
            circuits.map(({ state }) => state.generation),
            circuits.map(({ state }) => state.failures),
            circuits.map(({ state: { blockedUntil } }) =>
              blockedUntil === null ? null : DateTime.toEpochMillis(blockedUntil)
            ),
            circuits.map(({ state }) => state.inFlightMax),
            circuits.map(({ destination }) => streamIdOf(`circuit-${destination}`))
          ])
        ).pipe(Effect.asVoid),
      restoreReplays: (replays) =>
        unavailable(
          bulk.rows(restoreReplaysStatement, [
            replays.map(({ id }) => id),
            replays.map(({ request }) => request.orgId),
            replays.map(({ request }) => JSON.stringify(encodeSelection(request.selection))),
            replays.map(({ request }) => request.reason),
            replays.map(({ request }) => request.matched),
            replays.map(({ request }) => DateTime.toEpochMillis(request.requestedAt))
          ])
        ).pipe(Effect.asVoid)
    })
  })
)
