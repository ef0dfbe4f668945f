/** The figures of the whole installation: one row that the process with the turn writes. */
import { Duration, Effect, Layer } from "effect"
import { type QueueCounts, Readings, type SharedReadings } from "../../../application/ports/Readings.ts"
import { liveGeneration } from "../log/generations.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const turnStatement = prepared`insert into readings as r (holder, until)
    values ($1, clock_timestamp() + $2::int * interval '1 millisecond')
  on conflict (one) do update set holder = excluded.holder, until = excluded.until
    where r.holder = excluded.holder or r.until < clock_timestamp()
  returning true as mine`
const shareStatement = prepared`update readings set read_at = clock_timestamp(), readings = $2 where holder = $1`
const sharedStatement = prepared`select readings, extract(epoch from clock_timestamp() - read_at)::float8 as age
  from (select) as always left join readings on true`

// The first waiting message of each lane that has due work: an index probe a lane. The counts of messages come from the
// lists, which count as they go: counting what waits would read all of it.
const countsStatement = prepared`select
    (select coalesce(json_object_agg(channel, waiting), '{}') from (
      select channel, sum(count)::float8 as waiting from message_count
      where generation = ${liveGeneration("messages")} and status = 'QUEUED' group by channel) as c) as waiting,
    (select count(*)::float8 from (
      select 'message-' || message_id from set_aside where again_at is not null
      union select stream from parked) a) as "setAside",
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

export const layer = Layer.effect(
  Readings,
  Effect.gen(function* () {
    const { queue, reads, connections } = yield* Postgres
    return Readings.of({
      takeTurn: (holder, lease) =>
        reading(
          queue.query<{ mine: boolean }>(turnStatement, [holder, Math.round(Duration.toMillis(lease))]),
          (rows) => rows.length > 0
        ),
      counts: (destinations) =>
        reading(reads.query<QueueCounts>(countsStatement, [[...destinations]]), (rows) => rows[0]!),
      share: (holder, readings) =>
        unavailable(queue.query(shareStatement, [holder, JSON.stringify(readings)])).pipe(Effect.asVoid),
      shared: reading(
        reads.query<{ readings: SharedReadings | null; age: number | null }>(sharedStatement, []),
        ([row]) => ({ readings: row!.readings, ageSeconds: row!.age ?? 0 })
      ),
      connections
    })
  })
)
