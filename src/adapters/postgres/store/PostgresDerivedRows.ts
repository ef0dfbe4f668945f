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
      ), coalesce(h.n, 0), exists (select 1 from set_aside x where x.message_id = a.id and x.again_at is not null), t.lane, t.line, t.state, coalesce(m.body is not null or s.event_id is not null, false),
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
const restoreReadyStatement = unprepared`insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select u.lane, 'epoch'::timestamptz + u.due_ms * interval '1 millisecond', u.id, u.version, u.epoch, u.attempt
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::int[]) u(id, lane, due_ms, version, epoch, attempt)
    where not exists (select 1 from claim c where u.id = any (c.messages))
    on conflict do nothing`
// Dead ones stand in the way only where their lane says so.
const restoreTurnsStatement = unprepared`insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
    select u.id, u.lane, u.line, u.state, 'epoch'::timestamptz + u.due_ms * interval '1 millisecond', u.version, u.epoch, u.attempt
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], $8::int[])
      with ordinality u(id, lane, line, state, due_ms, version, epoch, attempt, n)
    where u.state <> 'DEAD' or exists (select 1 from lane l where l.lane = u.lane and l.blocks)
    order by u.n
    on conflict do nothing`
const moveUpStatement = unprepared`select wake_lanes(array_agg(a.lane), array_agg(a.due)) from advance_lines($1::uuid[], $2::text[]) a
    having count(*) > 0`
const wakeStatement = unprepared`select wake_lanes($1::uuid[], array(
    select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest($2::bigint[]) with ordinality u(ms, n) order by n))`
// The lease has run out, so the next worker that looks takes it over.
const restoreClaimStatement = unprepared`insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    select gen_random_uuid(), 'restored', clock_timestamp(), array_agg(u.id), array_agg(u.lane),
      array_agg('epoch'::timestamptz + u.due_ms * interval '1 millisecond'), array_agg(u.version), array_agg(u.epoch), array_agg(u.attempt)
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::int[]) u(id, lane, due_ms, version, epoch, attempt)
    where not exists (select 1 from claim c where u.id = any (c.messages))
    having count(*) > 0`
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
    isSetAside: aside === "t",
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
    const ids = (rows: ReadonlyArray<ReadonlyArray<string | null>>) => rows.map(([id]) => id as MessageId)

    const restoreQueue = Effect.fnUntraced(function* (rows: ReadonlyArray<Restored>) {
      const waits = rows.flatMap(({ messageId, place }) =>
        place.type === "Dead" ? [] : [{ messageId, place, wait: place }]
      )
      const waiting = waits.filter(({ place }) => place.type === "Waiting")
      const unlined = waiting.filter(({ place }) => place.line === null)
      const lined = rows.filter(({ place }) => place.line !== null)
      yield* bulk.rows(restoreReadyStatement, columnsOf(unlined))
      yield* bulk.rows(restoreClaimStatement, columnsOf(waits.filter(({ place }) => place.type === "UnderWay")))
      yield* bulk.rows(restoreTurnsStatement, [
        lined.map(({ messageId }) => messageId),
        lined.map(({ place }) => place.lane),
        lined.map(({ place }) => place.line),
        lined.map(({ place }) => (place.type === "Dead" ? "DEAD" : place.type === "UnderWay" ? "GIVEN" : "WAITING")),
        lined.map(({ place }) => (place.type === "Dead" ? 0 : DateTime.toEpochMillis(place.dueAt))),
        lined.map(({ place }) => (place.type === "Dead" ? 0 : place.version)),
        lined.map(({ place }) => (place.type === "Dead" ? 0 : place.epoch)),
        lined.map(({ place }) => (place.type === "Dead" ? 0 : place.attempt))
      ])
      yield* bulk.rows(moveUpStatement, [lined.map(({ place }) => place.lane), lined.map(({ place }) => place.line)])
      // Once all of it can be seen: a lane must not be put to sleep over what it does not see yet.
      yield* bulk.rows(wakeStatement, [
        waiting.map(({ place }) => place.lane),
        waiting.map(({ place }) => DateTime.toEpochMillis(place.dueAt))
      ])
    })

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
      restoreQueue: (rows) => (rows.length === 0 ? Effect.void : unavailable(restoreQueue(rows))),
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
