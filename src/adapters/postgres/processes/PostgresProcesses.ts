import { type DateTime, Duration, Effect, Layer } from "effect"
import {
  BEAT_EVERY_MS,
  type Figures,
  KEPT_FOR_MS,
  LEADS_FOR_MS,
  type OpenTransaction,
  type Process,
  Processes,
  type QueueCounts,
  SEEN_WITHIN_MS
} from "../../../application/ports/Processes.ts"
import { topics } from "../../../application/ports/Pulse.ts"
import type { BrokerReach } from "../../../domain/condition/decider.ts"
import { liveGeneration } from "../log/generations.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const soon = `clock_timestamp() + interval '${BEAT_EVERY_MS} milliseconds'`
const isAlive = `last_seen > clock_timestamp() - interval '${SEEN_WITHIN_MS} milliseconds'`

const beatStatement = prepared`with forgotten as (
      delete from process where last_seen < clock_timestamp() - interval '${KEPT_FOR_MS} milliseconds' and id <> $1
    ), registered as (
      insert into process as p (id, host, pid, roles, version, since, last_seen, clock_offset_ms, broker, broker_away, broker_since)
        values ($1, $2, $3, $4::text[], $5, now(), clock_timestamp(), $6, $7, $8, now())
      on conflict (id) do update set last_seen = excluded.last_seen, clock_offset_ms = excluded.clock_offset_ms,
        broker_away = excluded.broker_away,
        broker_since = case when p.broker_away is not distinct from excluded.broker_away then p.broker_since else excluded.broker_since end
      returning last_seen as at
    ), led as (
      insert into leader as l (holder, until) values ($1, clock_timestamp() + interval '${LEADS_FOR_MS} milliseconds')
      on conflict (one) do update set holder = excluded.holder, until = excluded.until
        where l.holder = excluded.holder or l.until < clock_timestamp()
      returning true
    )
    select r.at, exists (select from led) as leads,
      exists (select from lane where next_claim_at <= ${soon}) as queue,
      exists (select from sql_command) as commands,
      exists (select from receipt_inbox where parked_at is null and due_at <= ${soon}) as receipts,
      exists (select from replay where next_at <= ${soon}) or exists (select from erasure where ended_at is null and next_at <= ${soon})
        or exists (select from withdrawal) as jobs,
      l.figures, coalesce(extract(epoch from clock_timestamp() - l.figures_at), 0)::float8 as "figuresAgeSeconds"
    from registered r left join leader l on true`
const leaveStatement = prepared`with ended as (update leader set until = '-infinity' where holder = $1)
    delete from process where id = $1`
const listStatement = prepared`select id, host, pid, roles, version, broker, since, last_seen as "lastSeen", clock_offset_ms as "clockOffsetMs",
      ${isAlive} as alive
    from process order by since, id`
// Away since the last process lost it; reached since the first one reached it.
const brokerReachStatement = prepared`select bool_and(broker_away) as away,
      case when bool_and(broker_away) then max(broker_since) else min(broker_since) filter (where not broker_away) end as since
    from process where broker_away is not null and ${isAlive} having count(*) > 0`
const publishStatement = prepared`update leader set figures = $2, figures_at = clock_timestamp() where holder = $1`

/** In transactions: a slot knows no time. */
const SLOT_AGE_MAX = 100_000

// A snapshot of another database holds back nothing here, but a writing transaction there does, as a prepared or replicating one may.
// Vacuum does not wait for vacuum.
const oldestTransactionStatement = prepared`select kind, pid, name, database, since from (
      select 'transaction' as kind, pid, application_name as name, datname::text as database, coalesce(xact_start, backend_start) as since
        from pg_stat_activity
        where pid <> pg_backend_pid() and backend_type <> 'autovacuum worker'
          and (backend_xid is not null or (backend_xmin is not null and (datname is null or datname = current_database())))
      union all
      select 'prepared', null, gid, database::text, prepared from pg_prepared_xacts
      union all
      select 'slot', active_pid, slot_name::text, database::text, null from pg_replication_slots where age(xmin) > ${SLOT_AGE_MAX}
    ) held
    where since is null or since < clock_timestamp() - $1::float8 * interval '1 millisecond'
    order by since nulls last limit 1`

// An index probe a lane with due work; counts of messages come from message_count.
const countsStatement = prepared`select
    (select coalesce(json_object_agg(channel, waiting), '{}') from (
      select channel, sum(count)::float8 as waiting from message_count
      where generation = ${liveGeneration("messages")} and status = 'QUEUED' group by channel) as c) as waiting,
    (select count(*)::float8 from parked) as parked,
    (select coalesce(greatest(extract(epoch from clock_timestamp() - min(r.due_at)), 0), 0)::float8 from lane l
      cross join lateral (
        select due_at from ready r where r.lane = l.lane and r.due_at >= l.first_due_at and r.due_at <= clock_timestamp()
        order by r.lane, r.due_at, r.message_id limit 1
      ) r
      where l.ready_at <= clock_timestamp()) as "oldestDueSeconds",
    (select coalesce(json_object_agg(lower(circuit), count), '{}') from (
      select circuit, count(*) from lane group by circuit) as c) as circuits,
    (select coalesce(json_object_agg(id, ready_in(id, 100000)), '{}') from unnest($1::uuid[]) as id) as destinations,
    (select count(*)::float8 from (
      select from refused_command where at > clock_timestamp() - interval '15 minutes' limit 100000) as r) as "refusedCommands"`

interface BeatRow extends Readonly<Record<string, unknown>> {
  readonly at: DateTime.Utc
  readonly leads: boolean
  readonly figures: Figures | null
  readonly figuresAgeSeconds: number
}

export const layer = Layer.effect(
  Processes,
  Effect.gen(function* () {
    const { queue, reads, connections } = yield* Postgres
    return Processes.of({
      beat: ({ id, host, pid, roles, version, clockOffsetMs, broker, brokerAway }) =>
        reading(
          queue.query<BeatRow>(beatStatement, [id, host, pid, roles, version, clockOffsetMs, broker, brokerAway]),
          ([row]) => {
            const { at, leads, figures, figuresAgeSeconds } = row!
            return { at, leads, figures, figuresAgeSeconds, due: topics.filter((topic) => row![topic] === true) }
          }
        ),
      leave: (id) => Effect.asVoid(unavailable(queue.rows(leaveStatement, [id]))),
      list: unavailable(reads.query<Process>(listStatement, [])),
      brokerReach: reading(reads.query<BrokerReach>(brokerReachStatement, []), ([row = null]) => row),
      oldestTransaction: (longerThan) =>
        reading(
          reads.query<OpenTransaction>(oldestTransactionStatement, [Duration.toMillis(longerThan)]),
          ([oldest = null]) => oldest
        ),
      counts: (destinations) =>
        reading(reads.query<QueueCounts>(countsStatement, [[...destinations]]), (rows) => rows[0]!),
      publish: (leader, figures) =>
        Effect.asVoid(unavailable(queue.query(publishStatement, [leader, JSON.stringify(figures)]))),
      connections
    })
  })
)
