import { DateTime, Effect, Layer, Option } from "effect"
import {
  countsOf,
  type DeadCount,
  type Listed,
  type MessageFilter,
  MessageViews,
  rowOf
} from "../../../application/ports/MessageViews.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import type { ConsentOf } from "../../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId, ReplayId } from "../../../domain/ids.ts"
import { type MessageStatus, statuses } from "../../../domain/message/machine.ts"
import type { MessageView } from "../../../domain/message/view.ts"
import type { DeadLetterFilter } from "../../../domain/replay/facts.ts"
import { beyond, conditionsOf, type Page, pageOf } from "../filtering.ts"
import { literal } from "../literal.ts"
import { clearing, liveGeneration, stepping } from "../log/generations.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { isDeadLetter, views } from "../replays/deadLetters.ts"

const CALL =
  "project_messages($1, $2, $3, $4, $5::uuid[], $6, $7::int[], $8, $9, $10::uuid[], $11, $12::int[], $13::int[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19, $20::uuid[], $21::boolean[], $22::boolean[])"
const live = liveGeneration("messages")
const countsStatement = prepared`select channel, status, count::float8 as count from message_count where generation = ${live} and org_id = $1`
const countsOfAllStatement = prepared`select channel, status, sum(count)::float8 as count from message_count
    where generation = ${live} group by channel, status`
const ofReplayStatement = prepared`select status, count(*)::float8 as count from message_view
    where generation = ${live} and replay_id = $1 group by status`
// Two index probes a lane with due work.
const oldestStatement = prepared`select min(r.due_at) as oldest
    from lane l
    cross join lateral (
      select due_at, message_id from ready r where r.lane = l.lane and r.due_at >= l.first_due_at and r.due_at <= clock_timestamp()
      order by r.lane, r.due_at, r.message_id limit 1
    ) r
    cross join lateral (
      select e.data from event e where e.stream_id = r.message_id and e.version = 1
    ) e
    where l.ready_at <= clock_timestamp() and ($1::text is null or e.data ->> 'orgId' = $1)`

const ofDossierStatement = prepared`select id from message
    where org_id = $1 and dossier_id = $2 and channel = $3 and ($4::uuid is null or id > $4) order by id limit $5`
const endingStatement = prepared`select id, ends_at as "endsAt" from message_view
    where generation = ${live} and ends_at <= $1::timestamptz
      and ($2::timestamptz is null or (ends_at, id) > ($2::timestamptz, $3::uuid))
    order by generation, ends_at, id limit $4`

/** Remembers ISO texts: one takes most of a microsecond, and times of one step are often equal. */
const isoTexts = () => {
  const known = new Map<number, string>()
  return (time: DateTime.DateTime): string => {
    const ms = DateTime.toEpochMillis(time)
    const text = known.get(ms) ?? DateTime.formatIso(time)
    known.set(ms, text)
    return text
  }
}

interface ListedRow extends Listed {
  readonly at: DateTime.Utc
}

const pageOfRows = (rows: ReadonlyArray<ListedRow>, page: Page) =>
  pageOf(
    rows,
    page,
    ({ id, version }): Listed => ({ id, version }),
    ({ id, at }) => `${DateTime.formatIso(at)}/${id}`
  )

export const layer = Layer.effect(
  MessageViews,
  Effect.gen(function* () {
    const { derived, reads, lookups } = yield* Postgres
    const write = stepping(derived, CALL)

    const list = (orgId: OrgId | null, filter: MessageFilter, page: Page) => {
      const values: Array<unknown> = []
      const { named, statusesIn, orgs } = askedOf(orgId, filter, values)
      const of = conditionsOf(conditions, filter, values)
      const cursor = (columns: string) => beyond(columns, ["timestamptz", "uuid"], page, values)
      const most = page.limit + 1
      const text =
        named.length > 0
          ? `select v.id, v.version, v.created_at as at from message m join message_view v on v.id = m.id and v.generation = ${live}
              where m.org_id = any (${orgs})
                and ${[...named, `v.status = any (${statusesIn})`, ...of, ...cursor("m.accepted_at, m.id")].join(" and ")}
              order by m.accepted_at desc, m.id desc limit ${most}`
          : `select v.id, v.version, v.created_at as at from unnest(${orgs}) o(org) cross join unnest(${statusesIn}) s(status)
              cross join lateral (
                select v.* from message_view v
                where ${[`v.generation = ${live} and v.org_id = o.org and v.status = s.status`, ...of, ...cursor("v.created_at, v.id")].join(" and ")}
                order by v.created_at desc, v.id desc limit ${most}
              ) v order by v.created_at desc, v.id desc limit ${most}`
      return reading(reads.query<ListedRow>({ text }, values), (rows) => pageOfRows(rows, page))
    }

    const deadLetters = (orgId: OrgId | null, filter: DeadLetterFilter, page: Page) => {
      const values: Array<unknown> = []
      const orgs = orgsIn(orgId, values)
      const where = [
        isDeadLetter("o.org", filter, values),
        ...beyond("v.ended_at, v.id", ["timestamptz", "uuid"], page, values)
      ]
      const text = `select v.id, v.version, v.ended_at as at from unnest(${orgs}) o(org) cross join lateral (
          select v.* from ${views} where ${where.join(" and ")} order by v.ended_at desc, v.id desc limit ${page.limit + 1}
        ) v order by v.ended_at desc, v.id desc limit ${page.limit + 1}`
      return reading(reads.query<ListedRow>({ text }, values), (rows) => pageOfRows(rows, page))
    }

    const countDeadLetters = (orgId: OrgId, filter: DeadLetterFilter) => {
      const values: Array<unknown> = [orgId]
      const text = `select count(*)::int as matched, (count(*) filter (where v.contradicted))::int as contradicted
        from ${views} where ${isDeadLetter("$1", filter, values)}`
      return reading(reads.query<DeadCount>({ text }, values), (rows) => rows[0]!)
    }

    const ofReplay = (id: ReplayId) =>
      reading(
        reads.query<{ status: MessageStatus; count: number }>(ofReplayStatement, [id]),
        (rows) => new Map(rows.map(({ status, count }) => [status, count]))
      )

    const ending = (at: DateTime.Utc, { cursor, limit }: Page) => {
      const from = cursor?.split("/") ?? [null, null]
      const values = [DateTime.formatIso(at), ...from, limit + 1]
      return reading(reads.query<{ id: MessageId; endsAt: DateTime.Utc }>(endingStatement, values), (rows) =>
        pageOf(
          rows,
          { cursor, limit },
          ({ id }) => id,
          ({ id, endsAt }) => `${DateTime.formatIso(endsAt)}/${id}`
        )
      )
    }

    const ofDossier = ({ orgId, dossierId, channel }: ConsentOf, after: MessageId | null, limit: number) =>
      reading(lookups.rows(ofDossierStatement, [orgId, dossierId, channel, after, limit]), (rows) =>
        rows.map(([id]) => id as MessageId)
      )

    const stats = Effect.fnUntraced(function* (orgId: OrgId | null) {
      type Counted = { channel: ChannelName; status: MessageStatus; count: number }
      const [counts, oldest] = yield* unavailable(
        Effect.all(
          [
            orgId === null
              ? reads.query<Counted>(countsOfAllStatement, [])
              : reads.query<Counted>(countsStatement, [orgId]),
            reads.query<{ oldest: DateTime.Utc | null }>(oldestStatement, [orgId])
          ],
          { concurrency: 2 }
        )
      )
      return { ...countsOf(counts), oldestDueAt: oldest[0]?.oldest ?? null }
    })

    const project = (step: Step, views: ReadonlyArray<MessageView>) => {
      const rows = views.map(rowOf)
      const iso = isoTexts()
      const times = (of: (row: (typeof rows)[number]) => DateTime.Utc | null) =>
        literal(rows.map((row) => Option.match(Option.fromNullOr(of(row)), { onNone: () => "NULL", onSome: iso })))
      const isOpen = ({ status }: (typeof rows)[number]) => status === "QUEUED" || status === "SENDING"
      return write(step, [
        literal(rows.map(({ id }) => id)),
        rows.map(({ orgId }) => orgId),
        literal(rows.map(({ version }) => version)),
        literal(rows.map(({ status }) => status)),
        literal(rows.map(({ channel }) => channel)),
        literal(rows.map(({ destination }) => destination)),
        rows.map(({ eventType }) => eventType),
        literal(rows.map(({ epoch }) => epoch)),
        literal(rows.map(({ attempts }) => attempts)),
        times(({ createdAt }) => createdAt),
        times(({ updatedAt }) => updatedAt),
        times(({ endedAt }) => endedAt),
        literal(rows.map((row) => (row.endsAt === null ? (isOpen(row) ? "infinity" : "NULL") : iso(row.endsAt)))),
        times(({ dueAt }) => dueAt),
        rows.map(({ errorCode }) => errorCode),
        literal(rows.map(({ replayId }) => replayId ?? "NULL")),
        literal(rows.map(({ dismissed }) => String(dismissed))),
        literal(rows.map(({ contradicted }) => String(contradicted)))
      ])
    }

    const clear = clearing(derived, "messages", ["message_view", "message_count"])

    return MessageViews.of({ list, deadLetters, countDeadLetters, ofReplay, ending, ofDossier, stats, project, clear })
  })
)

const conditions = [
  ["createdAfter", "v.created_at >"],
  ["createdBefore", "v.created_at <"],
  ["channel", "v.channel ="],
  ["eventType", "v.event_type ="],
  ["updatedAfter", "v.updated_at >"],
  ["attempts", "v.attempts >="],
  ["errorCode", "v.error_code ="]
] as const satisfies ReadonlyArray<readonly [keyof MessageFilter, string]>

/** On rows of messages, each with an index. */
const searched = [
  ["to", "m.recipient ="],
  ["dossierId", "m.dossier_id ="],
  ["correlationId", "m.correlation_id ="],
  ["metadata", "m.metadata @>"],
  ["idempotencyKey", "m.id in (select i.message_id from idempotency i where i.org_id = m.org_id and i.key ="]
] as const satisfies ReadonlyArray<readonly [keyof MessageFilter, string]>

const dead: ReadonlyArray<MessageStatus> = ["FAILED", "DEAD_LETTER"]

const askedOf = (orgId: OrgId | null, filter: MessageFilter, values: Array<unknown>) => {
  const { metadata, status, errorCode } = filter
  const entry = metadata && { metadata: JSON.stringify({ [metadata.name]: metadata.value }) }
  const named = conditionsOf(searched, { ...filter, ...entry } as MessageFilter, values)
  const among = statuses.filter((each) => (status ?? each) === each && (errorCode === undefined || dead.includes(each)))
  return {
    orgs: orgsIn(orgId, values),
    named: named.map((condition) => (condition.startsWith("m.id in (") ? `${condition})` : condition)),
    statusesIn: `$${values.push(among)}::text[]`
  }
}

/** An array in SQL: the org, or all that have messages. */
const orgsIn = (orgId: OrgId | null, values: Array<unknown>): string =>
  orgId === null
    ? `array(select distinct c.org_id from message_count c where c.generation = ${live} and c.count > 0)`
    : `array[$${values.push(orgId)}::text]`
