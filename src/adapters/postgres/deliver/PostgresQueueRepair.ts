/** What is not where it should be in the queue: `mend_queue`, `mend_lines`, `mend_lanes`, and the list beside the queue. */
import { DateTime, Duration, Effect, Layer } from "effect"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { type Placed, QueueRepair, type Verdict } from "../../../application/ports/QueueRepair.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { literal } from "../literal.ts"
import { liveGeneration } from "../log/generations.ts"
import { Postgres, prepared, reading, unavailable, unprepared } from "../Postgres.ts"

const NOBODY = "00000000-0000-0000-0000-000000000000"
/** Before the first message that has not ended. */
const FIRST = `-infinity/${NOBODY}`

const turnStatement = prepared`insert into queue_repair as r (holder, until)
    values ($1, clock_timestamp() + $2::int * interval '1 millisecond')
  on conflict (one) do update set holder = excluded.holder, until = excluded.until
    where r.holder = excluded.holder or r.until < clock_timestamp()
  returning true`

// One statement, so all it says is of one moment: a message that moves is where it was, or where it goes. Of a million that wait only
// the lost ones are named, and each document is read once: half of PostgreSQL's work, and nearly all of ours.
const lostAmong = (open: string, answer: string) => `with open as materialized (
      select v.ends_at, v.id, v.destination as lane, v.due_at as due
      from message_view v
      where v.generation = ${liveGeneration("messages")} and v.ends_at is not null and ${open}
    ), held as materialized (select distinct m.id from claim c cross join unnest(c.messages) m(id))
    select ${answer} from (select o.ends_at, o.id, (
        not exists (select 1 from ready r where r.lane = o.lane and r.due_at = o.due and r.message_id = o.id)
        and not exists (select 1 from held h where h.id = o.id)
        and not exists (select 1 from line_entry t where t.message_id = o.id and t.state = 'WAITING')
        and not exists (select 1 from set_aside s where s.message_id = o.id and s.again_at is not null)
      ) as lost from open o) looked`
const lostIds = "string_agg(id::text, ' ' order by id) filter (where lost)"
const lostStatement = prepared`${lostAmong(
  "(v.ends_at, v.id) > ($1::timestamptz, $2::uuid) order by v.ends_at, v.id limit $3",
  `${lostIds}, count(*), (array_agg((to_json(ends_at) #>> '{}') || '/' || id order by ends_at desc, id desc))[1]`
)}`
const stillLostStatement = prepared`${lostAmong("v.id = any ($1::uuid[])", lostIds)}`
const idsIn = (named: string | null | undefined) => (named == null ? [] : (named.split(" ") as Array<MessageId>))

const mendLinesStatement = prepared`select mended, next_lane, next_line from mend_lines($1::uuid, $2, $3)`
const mendLanesStatement = prepared`select mended, next_lane from mend_lanes($1::uuid, $2)`
const strangers = `message_id = any ($1::uuid[])
    and not exists (select 1 from event e where e.stream_id = message_id)`
const dropStatement = unprepared`with waiting as (delete from ready where ${strangers}) delete from line_entry where ${strangers}`
const mendStatement = prepared`select message, verdict from mend_queue(
    $1::uuid[], $2::int[], $3::text[], $4::boolean[], $5::uuid[], $6::text[], $7::bigint[], $8::int[], $9::int[], $10::int[], $11)`

const places = { Waiting: "waiting", UnderWay: "under way", Out: "out" } as const

const valuesOf = (messages: ReadonlyArray<Placed>) => {
  const waits = messages.map(({ place }) => (place.type === "Out" ? null : place))
  return [
    messages.map(({ messageId }) => messageId),
    messages.map(({ version }) => version),
    messages.map(({ place }) => places[place.type]),
    messages.map(({ place }) => place.type === "Out" && place.dead),
    waits.map((wait) => wait?.lane ?? null),
    waits.map((wait) => wait?.line ?? null),
    waits.map((wait) => (wait === null ? null : DateTime.toEpochMillis(wait.dueAt))),
    waits.map((wait) => wait?.version ?? null),
    waits.map((wait) => wait?.epoch ?? null),
    waits.map((wait) => wait?.attempt ?? null)
  ]
}

export const layer = Layer.effect(
  QueueRepair,
  Effect.gen(function* () {
    const { durable, queue, reads } = yield* Postgres
    const pulse = yield* Pulse
    const woken = (mended: number) => (mended > 0 ? pulse.wake("queue") : Effect.void)

    return QueueRepair.of({
      takeTurn: (holder, lease) =>
        reading(queue.rows(turnStatement, [holder, Math.round(Duration.toMillis(lease))]), (rows) => rows.length > 0),
      lost: (after, limit) =>
        reading(reads.rows(lostStatement, [...(after ?? FIRST).split("/"), limit]), ([row]) => ({
          ids: idsIn(row![0]),
          next: Number(row![1]) < limit ? null : row![2]!
        })),
      stillLost: (ids) => reading(reads.rows(stillLostStatement, [literal(ids)]), ([row]) => idsIn(row![0])),
      mendLines: (after, limit) => {
        const end = after?.indexOf("/") ?? -1
        const [lane, line] = after === null ? [NOBODY, ""] : [after.slice(0, end), after.slice(end + 1)]
        return reading(durable.rows(mendLinesStatement, [lane, line, limit]), ([row]) => ({
          mended: Number(row![0]),
          next: row![1] === null ? null : `${row![1]}/${row![2]}`
        })).pipe(Effect.tap(({ mended }) => woken(mended)))
      },
      mendLanes: (after, limit) =>
        reading(durable.rows(mendLanesStatement, [after ?? NOBODY, limit]), ([row]) => ({
          mended: Number(row![0]),
          next: row![1] ?? null
        })).pipe(Effect.tap(({ mended }) => woken(mended))),
      dropStrangers: (ids) => unavailable(durable.rows(dropStatement, [ids])).pipe(Effect.asVoid),
      mend: (messages, { strays } = { strays: false }) =>
        reading(
          messages.length === 0 ? Effect.succeed([]) : durable.rows(mendStatement, [...valuesOf(messages), strays]),
          (rows) => new Map(rows.map(([id, verdict]) => [id as MessageId, verdict as Verdict]))
        ).pipe(Effect.tap((verdicts) => woken([...verdicts.values()].filter((verdict) => verdict === "mended").length)))
    })
  })
)
