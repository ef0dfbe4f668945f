/** Deletes by arrays of ids. A cursor is JSON: org, time and id of the last message, or time and id of the last event. */
import { DateTime, Effect, Layer } from "effect"
import { type Before, type EndedMessage, Retention } from "../../../application/ports/Retention.ts"
import { journalsOf } from "../../../domain/destination/changes.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { endedWell } from "../../../domain/message/view.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

const NOBODY = "00000000-0000-0000-0000-000000000000"
const DEAD = ["FAILED", "DEAD_LETTER", "SENT"]
const texts = (values: ReadonlyArray<string>) => values.map((value) => `'${value}'`).join(", ")

/** The place in the log that all followers passed, except those that stood still for a day. */
const passed = `select split_part(f.position, ':', 1)::bigint as tx, split_part(f.position, ':', 2)::bigint as position from (
      select coalesce(position, '0:0') as position from projection where moved_at > statement_timestamp() - interval '1 day'
      union all select f.position from (select coalesce(position, '0:0') as position from follower where begun) f where not exists (
        select from event e where e.at < statement_timestamp() - interval '1 day' and (e.tx, e.position) > (split_part(f.position, ':', 1)::bigint, split_part(f.position, ':', 2)::bigint))
      union all select '9223372036854775807:0') f
    order by 1, 2 limit 1`
const unread = (stream: string) =>
  `exists (select from event e cross join passed p where e.stream_id = ${stream} and (e.tx, e.position) > (p.tx, p.position))`

const endOf = (days: string, all: string) =>
  `coalesce($1::timestamptz - case when o.retention ->> '${days}' is not null then
      least((o.retention ->> '${days}')::float8, $2::float8) * interval '1 day' end, ${all}::timestamptz)`

const findStatement = prepared`with live as materialized (select generation from projection where name = 'messages' and live),
    asked as materialized (
      select coalesce($5, (select min(c.org_id) from message_count c where c.generation = (select generation from live))) as org
    ), days as materialized (
      select a.org, ${endOf("endedDays", "$3")} as ended, ${endOf("deadLetterDays", "$4")} as dead
      from asked a left join org o on o.id = a.org
    ), looked as materialized (
      select l.* from unnest(array[${texts([...endedWell, ...DEAD])}]) s(status) cross join days d cross join lateral (
        select m.id, m.version, m.created_at, case
            when m.status = 'SENT' then m.updated_at < d.dead
            when m.status in (${texts(DEAD)}) then m.ended_at < d.dead and not exists (select from line_entry t where t.message_id = m.id)
            else m.ended_at < d.ended end as over
        from message_view m
        where m.generation = (select generation from live) and m.org_id = d.org and m.status = s.status
          and m.created_at < greatest(d.ended, d.dead)
          and (m.created_at, m.id) > (coalesce($6::timestamptz, '-infinity'), coalesce($7::uuid, '${NOBODY}'))
        order by m.created_at, m.id limit $8) l
      order by l.created_at, l.id limit $8
    ), passed as materialized (${passed})
    select l.id, l.version, l.over and not ${unread("l.id")},
      a.org, to_json(l.created_at) #>> '{}',
      (select min(c.org_id) from message_count c where c.generation = (select generation from live) and c.org_id > a.org)
    from asked a left join looked l on true order by l.created_at, l.id`

const forgetStatement = prepared`select forget($1::uuid[], $2::int[])`

const forgetEventsStatement = prepared`with looked as materialized (
      select p.id, p.stream_id, p.at, p.at < ${endOf("endedDays", "$3")} as old from publication p left join org o on o.id = p.org_id
      where p.at < greatest($3::timestamptz, (select max(${endOf("endedDays", "null")}) from org o))
        and (p.at, p.id) > (coalesce($4::timestamptz, '-infinity'), coalesce($5::uuid, '${NOBODY}'))
      order by p.at, p.id limit $6
    ), passed as materialized (${passed}),
    gone as materialized (
      select l.id, l.stream_id from looked l
      where l.old and not ${unread("l.stream_id")}
        and not exists (
          select from fan_out f where f.event_id = l.id and (
            exists (select from event e where e.stream_id = f.message_id)
            or exists (select from append_intent i where i.message_id = f.message_id)))
    ), told as (delete from fan_out where event_id in (select id from gone)
    ), bodies as (delete from shared_body where event_id in (select id from gone)
    ), keys as (delete from event_idempotency where event_id in (select id from gone)
    ), facts as (delete from event where stream_id in (select stream_id from gone)
    ), details as (delete from detail where stream_id in (select stream_id from gone)
    ), events as (delete from publication where id in (select id from gone))
    select to_json(l.at) #>> '{}', l.id, g.id is not null from looked l left join gone g using (id) order by l.at, l.id`

const removedStatement = prepared`select d.id, d.channel from destination d where d.removed_at < $1 order by d.removed_at, d.id limit $2`
const unreadStatement = prepared`with passed as materialized (${passed}) select i from unnest($1::uuid[]) i where ${unread("i")}`
const forgetDestinationsStatement = prepared`select forget_destinations($1::uuid[], $2::uuid[], $3::uuid[])`

const time = (at: DateTime.Utc | null) => at && DateTime.formatIso(at)
const placeIn = (cursor: string | null) => (cursor === null ? [] : (JSON.parse(cursor) as ReadonlyArray<string | null>))

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { bulk } = yield* Postgres

    const find = ({ now, daysMax, ended, dead }: Before, from: string | null, limit: number) => {
      const [org = null, at = null, id = null] = placeIn(from)
      const values = [time(now), daysMax, time(ended), time(dead), org, at, id, limit]
      return reading(bulk.rows(findStatement, values), (rows) => {
        const looked = rows.filter(([id]) => id != null)
        const [lastId, , , org, lastAt, nextOrg] = rows.at(-1)!
        const place = looked.length === limit ? [org, lastAt, lastId] : nextOrg == null ? null : [nextOrg, null, null]
        return {
          messages: looked.flatMap(([id, version, isOver]) =>
            isOver === "t" ? [{ id: id as MessageId, version: Number(version) }] : []
          ),
          next: place && JSON.stringify(place)
        }
      })
    }

    const forget = (messages: ReadonlyArray<EndedMessage>) =>
      reading(
        bulk.rows(forgetStatement, [
          literal(messages.map(({ id }) => id)),
          literal(messages.map(({ version }) => version))
        ]),
        ([row]) => (row![0] == null ? null : Number(row![0]))
      )

    const forgetEvents = ({ now, daysMax, ended }: Before, from: string | null, limit: number) => {
      const [at = null, id = null] = placeIn(from)
      return reading(bulk.rows(forgetEventsStatement, [time(now), daysMax, time(ended), at, id, limit]), (rows) => ({
        removed: rows.filter(([, , isGone]) => isGone === "t").length,
        next: rows.length < limit ? null : JSON.stringify(rows.at(-1)!.slice(0, 2))
      }))
    }

    const forgetDestinations: Retention["Service"]["forgetDestinations"] = Effect.fnUntraced(function* (
      removedBefore,
      prefixes,
      limit
    ) {
      const removed = yield* bulk.rows(removedStatement, [time(removedBefore), limit])
      const journals = removed.flatMap(([id, channel]) => {
        const prefix = prefixes.get(channel as never)
        return prefix === undefined
          ? []
          : journalsOf(prefix, id!).map((name) => ({ id: id!, stream: streamIdOf(name) }))
      })
      const streams = literal(journals.map(({ stream }) => stream))
      const unread = new Set((yield* bulk.rows(unreadStatement, [streams])).map(([stream]) => stream))
      const held = new Set(journals.filter(({ stream }) => unread.has(stream)).map(({ id }) => id))
      const ids = [...new Set(journals.map(({ id }) => id))].filter((id) => !held.has(id))
      if (ids.length === 0) return 0
      const values = [literal(ids), literal(journals.map(({ id }) => id)), streams]
      const [row] = yield* bulk.rows(forgetDestinationsStatement, values)
      return Number(row![0])
    }, unavailable)

    return Retention.of({ find, forget, forgetEvents, forgetDestinations })
  })
)
