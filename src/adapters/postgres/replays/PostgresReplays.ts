/**
 * Replays and their items. Commits of a search may be lost in a crash of the database, items together with its progress; the journal,
 * which begins when the search is over, takes them along.
 */
import { DateTime, Duration, Effect, Layer, Schema } from "effect"
import { type Opening, type ReplayItem, type ReplayJob, Replays } from "../../../application/ports/Replays.ts"
import type { EventId, MessageId } from "../../../domain/ids.ts"
import {
  type DeadLetterFilter,
  type MissedEvents,
  ReplaySelection,
  type WaitingFilter
} from "../../../domain/replay/facts.ts"
import { type Looked, pageOfRows, within } from "../boundedPages.ts"
import { liveGeneration } from "../log/generations.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { isWanted, waits } from "./deadLetters.ts"

const columns = `r.id, r.org_id as "orgId", r.selection, r.reason, r.requested_at as "requestedAt",
  coalesce(s.matched, r.matched) as matched, coalesce(s.searching, false) as searching`
const from = (replay: string) => `from ${replay} r left join replay_search s on s.replay_id = r.id`
const getStatement = prepared`select ${columns} ${from("replay")} where r.id = $1 and r.org_id = $2`
const knownStatement = prepared`select ${columns}, r.request_hash as "requestHash" ${from("replay")} where r.org_id = $1 and r.key = $2`
// Ids sort by time.
const listed = within(
  `select *, true as wanted, false as cut from replay
    where org_id = $1 and ($2::uuid is null or id < $2) order by id desc limit $3`,
  {
    order: "id desc",
    columns: "id, org_id, selection, reason, requested_at, matched",
    size: "octet_length(selection::text)"
  }
)
const listStatement = prepared`select ${columns}, r.wanted, r.cut ${from(`(${listed})`)} order by r.id desc`
const itemsStatement = prepared`select message_id as "messageId", epoch, event_id as "eventId" from replay_item where replay_id = $1 and number > $2 order by number limit $3`
const takeStatement = prepared`with taken as (
      update replay set next_at = statement_timestamp() + make_interval(secs => $1 / 1000.0)
      where id = (select id from replay where next_at <= statement_timestamp() order by next_at limit 1 for update skip locked)
        and next_at <= statement_timestamp() returning *
    )
    select ${columns} ${from("taken")}`
const backStatement = prepared`update replay set next_at = statement_timestamp() + make_interval(secs => $2 / 1000.0)
    where id = $1 and next_at < 'infinity'`
const endSearchStatement = prepared`update replay_search set searching = false where replay_id = $1`
const forgetItemsStatement = prepared`delete from replay_item where ctid = any (array(
    select ctid from replay_item where replay_id = $1 limit $2)) returning number`
const FORGOTTEN_AT_ONCE = 5_000
const closeStatement = prepared`update replay set next_at = 'infinity' where id = $1`

const encodeSelection = Schema.encodeSync(ReplaySelection)
const decodeSelection = Schema.decodeUnknownSync(ReplaySelection)

interface ItemRow {
  readonly messageId: MessageId | null
  readonly epoch: number
  readonly eventId: EventId | null
}

const itemOf = ({ messageId, epoch, eventId }: ItemRow): ReplayItem =>
  eventId === null ? { messageId: messageId!, epoch } : { eventId }

interface JobRow extends Omit<ReplayJob, "selection"> {
  readonly selection: unknown
}

const jobOf = (row: JobRow): ReplayJob => ({ ...row, selection: decodeSelection(row.selection) })

/** The key's unique constraint decides between two racers; the loser finds no row of its own and writes no items. */
const openStatement = prepared`with opened as (
      insert into replay (id, org_id, key, request_hash, selection, reason, requested_at, matched, next_at)
        values ($1, $2, $3, $4, $5, $6, $7, cardinality($8::uuid[]), clock_timestamp())
      on conflict do nothing
      returning *
    ),
    items as (
      insert into replay_item (replay_id, number, message_id, epoch)
        select o.id, m.number, m.message, m.epoch
        from opened o cross join unnest($8::uuid[], $9::int[]) with ordinality m(message, epoch, number)
    ),
    s as (
      insert into replay_search (replay_id, event_types) select o.id, $11::text[] from opened o where $10
      returning replay_id, matched, searching
    )
    select ${columns} from opened r left join s on s.replay_id = r.id`

const valuesOf = ({ id, orgId, selection, reason, requestedAt, set, idempotency }: Opening) => {
  const items = "items" in set ? set.items : []
  return [
    id,
    orgId,
    idempotency?.key ?? null,
    idempotency?.requestHash ?? null,
    JSON.stringify(encodeSelection(selection)),
    reason,
    DateTime.formatIso(requestedAt),
    items.map(({ messageId }) => messageId),
    items.map(({ epoch }) => epoch),
    !("items" in set),
    "missed" in set ? set.missed.eventTypes : null
  ]
}

/** Progress of a search; the time as the server writes it, in microseconds. */
interface Reached {
  readonly at: string | null
  readonly lastId: string | null
}
const reachedStatement = prepared`select at::text, id as "lastId" from replay_search where replay_id = $1 and searching`

/**
 * Looks at a bounded number of rows and takes those of the set, so that no step is long because little is to be found. Of two searches at
 * once, one finds the search moved on and takes nothing.
 */
const searchQuery = ({ id, orgId, selection, requestedAt }: ReplayJob, { at, lastId }: Reached, limit: number) => {
  const values: Array<unknown> = [id, lastId, limit, DateTime.formatIso(requestedAt)]
  const bound = (value: unknown) => `$${values.push(value)}`
  const beyond = (columns: string) =>
    lastId === null ? "true" : `(${columns}) > (${bound(at)}::timestamptz, ${bound(lastId)}::uuid)`
  const missed = ({ to, since }: MissedEvents) =>
    `select p.id as event, null::uuid as message, null::int as epoch, p.at, p.id,
        p.event_type = any ((select event_types from replay_search where replay_id = $1)::text[])
          and not exists (select 1 from fan_out f where f.event_id = p.id and f.destination = ${bound(to)}::uuid)
          and exists (select 1 from shared_body s where s.event_id = p.id and s.held) as wanted
      from publication p
      where p.org_id = ${bound(orgId)} and p.at >= ${bound(DateTime.formatIso(since))}::timestamptz
        and p.at <= $4::timestamptz and ${beyond("p.at, p.id")}
      order by p.at, p.id limit $3`
  const messages = (statuses: ReadonlyArray<string>, wanted: string) =>
    `select null::uuid as event, v.id as message, v.epoch, v.created_at as at, v.id, ${wanted} as wanted
      from unnest(array['${statuses.join("', '")}']) s(status) cross join lateral (
        select * from message_view
        where generation = ${liveGeneration("messages")} and org_id = ${bound(orgId)} and status = s.status and ${beyond("created_at, id")}
        order by created_at, id limit $3
      ) v left join message m on m.id = v.id
      order by v.created_at, v.id limit $3`
  const dead = (filter: DeadLetterFilter) =>
    messages(["FAILED", "DEAD_LETTER"], `v.ended_at <= $4::timestamptz and ${isWanted(filter, values)}`)
  const waiting = (filter: WaitingFilter) =>
    messages(["QUEUED"], `v.created_at <= $4::timestamptz and ${waits(filter, values)}`)
  const rows =
    "missed" in selection
      ? missed(selection.missed)
      : "waiting" in selection
        ? waiting(selection.waiting)
        : dead("filter" in selection ? selection.filter : {})
  const text = `with looked_at as materialized (${rows}),
    taken as materialized (
      select *, row_number() over (order by at, id) as nth from looked_at where wanted
    ),
    moved as (
      update replay_search set matched = matched + (select count(*) from taken),
        searching = (select count(*) from looked_at) = $3,
        at = coalesce((select max(l.at) from looked_at l), replay_search.at),
        id = coalesce((select l.id from looked_at l order by l.at desc, l.id desc limit 1), replay_search.id)
      where replay_id = $1 and searching and replay_search.id is not distinct from $2::uuid
      returning replay_id, matched - (select count(*) from taken) as before
    )
    insert into replay_item (replay_id, number, message_id, epoch, event_id)
      select m.replay_id, m.before + t.nth, t.message, t.epoch, t.event from moved m cross join taken t`
  return { text, values }
}

export const layer = Layer.effect(
  Replays,
  Effect.gen(function* () {
    const { derived, durable, lookups, reads } = yield* Postgres

    const open = Effect.fnUntraced(function* (opening: Opening) {
      const [opened] = yield* unavailable(durable.query<JobRow>(openStatement, valuesOf(opening)))
      if (opened !== undefined) return { type: "Opened", job: jobOf(opened) } as const
      const [known] = yield* unavailable(
        durable.query<JobRow & { readonly requestHash: string }>(knownStatement, [
          opening.orgId,
          opening.idempotency?.key ?? null
        ])
      )
      // Without a key only the id could collide, which is new.
      if (known === undefined) return yield* Effect.die(new Error(`a replay with the new id ${opening.id} exists`))
      const { requestHash, ...job } = known
      return { type: "DuplicateKey", job: jobOf(job), requestHash } as const
    })

    const search = Effect.fnUntraced(function* (job: ReplayJob, limit: number) {
      const [reached] = yield* unavailable(durable.query<Reached>(reachedStatement, [job.id]))
      if (reached !== undefined) {
        const { text, values } = searchQuery(job, reached, limit)
        yield* unavailable(derived.query({ text }, values))
      }
      const [after] = yield* unavailable(durable.query<JobRow>(getStatement, [job.id, job.orgId]))
      return after === undefined ? job : jobOf(after)
    })

    return Replays.of({
      open,
      search,
      requestedUnder: (orgId, key) =>
        reading(lookups.query<JobRow>(knownStatement, [orgId, key]), ([row]) => row ?? null),
      endSearch: (id) => Effect.asVoid(unavailable(durable.query(endSearchStatement, [id]))),
      list: (orgId, page) =>
        reading(reads.query<JobRow & Looked>(listStatement, [orgId, page.cursor, page.limit + 1]), (rows) =>
          pageOfRows(
            rows,
            page,
            ({ wanted: _, cut: __, ...row }) => jobOf(row),
            ({ id }) => id
          )
        ),
      get: (orgId, id) =>
        reading(lookups.query<JobRow>(getStatement, [id, orgId]), ([row]) => (row === undefined ? null : jobOf(row))),
      items: (id, after, limit) =>
        reading(reads.query<ItemRow>(itemsStatement, [id, after, limit]), (rows) => rows.map(itemOf)),
      take: (lease) =>
        reading(durable.query<JobRow>(takeStatement, [Duration.toMillis(lease)]), ([row]) =>
          row === undefined ? null : jobOf(row)
        ),
      back: (id, pause) => Effect.asVoid(unavailable(durable.query(backStatement, [id, Duration.toMillis(pause)]))),
      close: (id) =>
        unavailable(derived.query(forgetItemsStatement, [id, FORGOTTEN_AT_ONCE])).pipe(
          Effect.repeat({ until: (forgotten) => forgotten.length < FORGOTTEN_AT_ONCE }),
          Effect.andThen(unavailable(durable.query(closeStatement, [id]))),
          Effect.asVoid
        )
    })
  })
)
