/** The rows of the queue and of the list projection, looked at from outside and made again. */
import { DateTime, Effect, Layer, Schema } from "effect"
import {
  DerivedRows,
  type DerivedState,
  type LinePosition,
  type Lookup,
  type ReadyRow,
  type Restored
} from "../../../application/ports/DerivedRows.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { journalOf } from "../../../domain/event/event.ts"
import type { DestinationId, EventId, MessageId } from "../../../domain/ids.ts"
import type { Wait } from "../../../domain/message/place.ts"
import { ReplaySelection } from "../../../domain/replay/facts.ts"
import { sealedTables } from "../messages/sealClear.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"
import { lostKeysIn } from "./lostKeys.ts"
import { streamIdOf } from "./PostgresJournals.ts"

const isoOf = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

// One statement, so all it answers is of one moment. A batch names messages it has settled until it is released:
// only the version tells whether one is still in its hands. A row that a worker put back may carry a later version than the one
// with which the message began to wait, for receipts and erasures move nobody.
const lookStatement = prepared`with live as materialized (
      select generation, position from projection where name = 'messages' and live
    ), held as materialized (
      select m.id, count(*) as n from claim c, unnest(c.messages, c.versions) m(id, version)
      join unnest($1::uuid[], $4::int[]) a(id, version) on a.id = m.id and m.version >= a.version group by m.id
    )
    select a.id,
      -- Times are whole milliseconds, but for rows that were made by hand.
      exists (
        select 1 from ready r where r.lane = a.lane and r.message_id = a.id
          and r.due_at >= 'epoch'::timestamptz + a.due_ms * interval '1 millisecond'
          and r.due_at < 'epoch'::timestamptz + (a.due_ms + 1) * interval '1 millisecond'
          and r.version >= a.version and (r.epoch, r.attempt) = (a.epoch, a.attempt)
      ), coalesce(h.n, 0), exists (select 1 from parked x where x.stream = 'message-' || a.id), t.lane, t.line, t.state, coalesce(m.body is not null or s.event_id is not null, false),
      (select position from live),
      case when v.id is not null then json_build_object('id', v.id, 'orgId', v.org_id, 'version', v.version, 'status', v.status,
        'channel', v.channel, 'destination', v.destination, 'eventType', v.event_type, 'epoch', v.epoch, 'attempts', v.attempts,
        'createdAt', ${isoOf("v.created_at")}, 'updatedAt', ${isoOf("v.updated_at")}, 'endedAt', ${isoOf("v.ended_at")},
        'endsAt', ${isoOf("nullif(v.ends_at, 'infinity')")}, 'dueAt', ${isoOf("v.due_at")}, 'errorCode', v.error_code,
        'replayId', v.replay_id, 'dismissed', v.dismissed, 'contradicted', v.contradicted) end
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::int[]) a(id, lane, due_ms, version, epoch, attempt)
    left join held h on h.id = a.id
    left join line_entry t on t.message_id = a.id
    left join message m on m.id = a.id
    left join shared_body s on s.event_id = m.event_id
    left join message_view v on v.generation = (select generation from live) and v.id = a.id`
const readyStatement = prepared`select lane, floor(extract(epoch from due_at) * 1000)::bigint, message_id, version, epoch, attempt, to_json(due_at) #>> '{}'
    from ready where (lane, due_at, message_id) > ($1::uuid, $2::timestamptz, $3::uuid)
    order by lane, due_at, message_id limit $4`
const turnsStatement = prepared`select message_id from line_entry where message_id > $1 order by message_id limit $2`
const liveGeneration = "(select generation from projection where name = 'messages' and live)"
const ownersStatement = prepared`(select id as message_id from message where id > $1 order by id limit $2)
    union (select message_id from idempotency where message_id > $1 order by message_id limit $2)
    union (select id from message_view where generation = ${liveGeneration} and id > $1 order by id limit $2)
    order by 1 limit $2`
const brokenLinesStatement = unprepared`select lane, line from (
      select t.lane, t.line, t.state, row_number() over (partition by t.lane, t.line order by t.nth) as place
      from line_entry t
    ) t
    group by lane, line having bool_or(case when place = 1 then state = 'WAITING' else state <> 'WAITING' end) order by lane, line limit 1000`
const wrongCountsStatement = unprepared`select org_id, channel, status, coalesce(c.count, 0), coalesce(v.count, 0)
    from (select * from message_count where generation = ${liveGeneration}) c
    full join (
      select org_id, channel, status, count(*) from message_view where generation = ${liveGeneration}
      group by org_id, channel, status
    ) v using (org_id, channel, status)
    where coalesce(c.count, 0) <> coalesce(v.count, 0) order by 1, 2, 3 limit 1000`
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
const eventRowsStatement = prepared`select a.id, p.id is not null, s.event_id is not null
    from unnest($1::uuid[]) a(id)
    left join publication p on p.id = a.id
    left join shared_body s on s.event_id = a.id and s.held`
const brokenBodiesStatement = unprepared`(select s.event_id, 'its body is kept, and nobody has it' from shared_body s
      where not s.held and not exists (select 1 from message m where m.event_id = s.event_id) limit 1000)
    union all (select m.event_id, 'message ' || m.id || ' shares its body, and it is not there' from message m
      where m.event_id is not null and not exists (select 1 from shared_body s where s.event_id = m.event_id) limit 1000)`
const restoreEventsStatement = unprepared`insert into publication (id, stream_id, org_id, event_type, correlation_id, dossier_id, at)
    select u.id, u.stream, u.org, u.type, u.correlation, u.dossier, 'epoch'::timestamptz + u.at_ms * interval '1 millisecond'
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
      u(id, stream, org, type, correlation, dossier, at_ms)
    on conflict do nothing`
const restoreFanOutStatement = unprepared`insert into fan_out (event_id, destination, message_id)
    select * from unnest($1::uuid[], $2::uuid[], $3::uuid[]) on conflict do nothing`

const NOBODY = "00000000-0000-0000-0000-000000000000"

const encodeSelection = Schema.encodeSync(ReplaySelection)

const columnsOf = (rows: ReadonlyArray<{ readonly messageId: MessageId; readonly wait: Wait | null }>) => [
  rows.map(({ messageId }) => messageId),
  rows.map(({ wait }) => wait?.lane ?? null),
  rows.map(({ wait }) => (wait === null ? null : DateTime.toEpochMillis(wait.dueAt))),
  rows.map(({ wait }) => wait?.version ?? null),
  rows.map(({ wait }) => wait?.epoch ?? null),
  rows.map(({ wait }) => wait?.attempt ?? null)
]

const foundIn = (row: ReadonlyArray<string | null>): DerivedState => {
  const [_, ready, held, aside, lane, line, state, body, position, view] = row
  return {
    isReady: ready === "t",
    held: Number(held),
    isParked: aside === "t",
    linePlace:
      lane == null || line == null ? null : { lane: lane as DestinationId, line, state: state as LinePosition },
    hasBody: body === "t",
    viewsAt: position ?? null,
    view: view == null ? null : JSON.parse(view)
  }
}

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
      look: (asked: ReadonlyArray<Lookup>) =>
        reading(
          reads.rows(lookStatement, columnsOf(asked)),
          (rows) => new Map(rows.map((row) => [row[0] as MessageId, foundIn(row)]))
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
      owners: (after, limit) => reading(reads.rows(ownersStatement, [after ?? NOBODY, limit]), ids),
      brokenLines: reading(bulk.rows(brokenLinesStatement, []), (rows) =>
        rows.map(([lane, line]) => ({ lane: lane as DestinationId, line: line! }))
      ),
      lostKeys: yield* lostKeysIn(sealedTables),
      wrongCounts: reading(bulk.rows(wrongCountsStatement, []), (rows) =>
        rows.map(
          ([org, channel, status, counted, are]) => `${org} ${channel} ${status}: ${counted} counted, ${are} listed`
        )
      ),
      eventRows: (ids) =>
        reading(
          reads.rows(eventRowsStatement, [ids]),
          (rows) =>
            new Map(
              rows.map(([id, listed, body]) => [id as EventId, { isListed: listed === "t", hasBody: body === "t" }])
            )
        ),
      brokenBodies: reading(reads.rows(brokenBodiesStatement, []), (rows) =>
        rows.map(([event, detail]) => ({ eventId: event as EventId, detail: detail! }))
      ),
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
