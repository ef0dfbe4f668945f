/** The list projection: rows to search and counters to sum, written by `project_messages`. */
import { DateTime, Effect, Layer, Schema } from "effect"
import { countsOf, type DeadCount, type MessageFilter, MessageViews } from "../../../application/ports/MessageViews.ts"
import type { Step } from "../../../application/ports/Projections.ts"
import type { ConsentOf } from "../../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId, ReplayId } from "../../../domain/ids.ts"
import type { MessageStatus } from "../../../domain/message/machine.ts"
import { isDead, type MessageView, MessageViewJson } from "../../../domain/message/view.ts"
import type { DeadLetterFilter } from "../../../domain/replay/facts.ts"
import { boundedRows, type Looked, pageOfRows, searched } from "../boundedPages.ts"
import { beyond, type Page, pageOf } from "../filtering.ts"
import { literal } from "../literal.ts"
import { clearing, liveGeneration } from "../log/generations.ts"
import { stepping } from "../log/projectionRows.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { deadLettersBy, isDeadLetter } from "../replays/deadLetters.ts"
import {
  type Columns,
  each,
  entryOf,
  isOf,
  latest,
  type OneAfterTheOther,
  orgIn,
  pageOfAllOrgs,
  type Rows,
  shownView,
  someOf,
  someOfEachStatus,
  someWithEntry
} from "./pages.ts"

const CALL =
  "project_messages($1, $2, $3, $4, $5::uuid[], $6, $7::int[], $8, $9, $10, $11, $12, $13, $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17, $18, $19::uuid[], $20)"
const countsStatement = prepared`select channel, status, count::float8 as count from message_count where generation = ${liveGeneration("messages")} and org_id = $1`
const countsOfAllStatement = prepared`select channel, status, sum(count)::float8 as count from message_count
    where generation = ${liveGeneration("messages")} group by channel, status`
const ofReplayStatement = prepared`select status, count(*)::float8 as count from message_view
    where generation = ${liveGeneration("messages")} and replay_id = $1 group by status`
// The first waiting message of each lane that has due work: two index probes a lane.
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
    where generation = ${liveGeneration("messages")} and ends_at <= $1::timestamptz
      and ($2::timestamptz is null or (ends_at, id) > ($2::timestamptz, $3::uuid))
    order by generation, ends_at, id limit $4`

/** After this many views, which take about a millisecond to write, other fibers run. */
const YIELD_EVERY = 100

/** A view as it is stored: JSON, with its times as text. */
interface ViewRow {
  readonly view: string
}
const decode = Schema.decodeUnknownSync(MessageViewJson)

/** ISO texts of times. Making one takes most of a microsecond, and the times of one step are often equal. */
const isoTexts = () => {
  const known = new Map<number, string>()
  return (time: DateTime.DateTime): string => {
    const ms = DateTime.toEpochMillis(time)
    const text = known.get(ms) ?? DateTime.formatIso(time)
    known.set(ms, text)
    return text
  }
}

const names = Object.keys(MessageViewJson.fields)

/** The JSON that the schema would write. With the times as text it takes 1.5 µs instead of 5.8. */
const textOf = (view: MessageView, iso: (time: DateTime.DateTime) => string): string => {
  const row: Record<string, unknown> = { ...view }
  for (const name of names) {
    const value = row[name]
    if (DateTime.isDateTime(value)) row[name] = iso(value)
  }
  return JSON.stringify(row)
}

export const layer = Layer.effect(
  MessageViews,
  Effect.gen(function* () {
    const { derived, reads, lookups } = yield* Postgres
    const write = stepping(derived, CALL)

    const pageOfViews = (
      orgId: OrgId | null,
      { columns, entry, ...parts }: Listed,
      values: ReadonlyArray<unknown>,
      page: Page,
      among?: ReadonlyArray<MessageStatus>
    ) => {
      const text =
        orgId === null
          ? pageOfAllOrgs({ ...parts, columns, entry }, page, among)
          : `${entry === undefined ? "" : `with ${entry} `}${boundedRows({ ...parts, order: latest(columns), ...shownView }, page)}`
      const time = columns[0] === "created_at" ? "createdAt" : "endedAt"
      return reading(reads.query<ViewRow & Looked>({ text }, values), (rows) =>
        pageOfRows(
          rows,
          page,
          ({ view }) => decode(JSON.parse(view)),
          (last) => {
            const view: { readonly [field: string]: unknown } = JSON.parse(last.view)
            return `${view[time]}/${view["id"]}`
          }
        )
      )
    }

    const list = (orgId: OrgId | null, asked: MessageFilter, page: Page) => {
      const { metadata, idempotencyKey, ...filter } = asked
      const { status, ...others } = filter
      const values: Array<unknown> = []
      const org = orgId ?? each
      const columns = ["created_at", "id"] as const
      const hash = hashOf(org, metadata, values)
      const among = status === undefined ? undefined : [status]
      const isLookedUp =
        idempotencyKey !== undefined || conditions.indexed.some(([field]) => filter[field] !== undefined)
      const sought: Pick<MessageFilter, Field> = isLookedUp ? filter : others
      const { found, wanted } = searched(sought, conditions, values)
      const where = [
        `generation = ${liveGeneration("messages")}`,
        isOf(org, values),
        ...found,
        ...acceptedUnder(org, idempotencyKey, values),
        ...(filter.channel === undefined ? [] : [wasUsed(org, filter.channel, values)]),
        ...beyond("created_at, id", ["timestamptz", "uuid"], page, values)
      ].join(" and ")
      const some = isLookedUp ? someOf(where, columns) : someOfEachStatus(where, columns, among)
      const listed =
        hash === undefined
          ? { rows: some, wanted }
          : {
              rows: someWithEntry(hash, where, columns, some),
              wanted: [`entries @> array[${hash}]`, ...wanted],
              entry: entryOf(org, hash)
            }
      return pageOfViews(orgId, { ...listed, columns }, values, page, among)
    }

    const deadLetters = (orgId: OrgId | null, filter: DeadLetterFilter, page: Page) => {
      const values: Array<unknown> = []
      const columns = ["ended_at", "id"] as const
      const { found, wanted } = deadLettersBy(orgId ?? each, filter, values)
      const where = [...found, ...beyond("ended_at, id", ["timestamptz", "uuid"], page, values)].join(" and ")
      return pageOfViews(orgId, { rows: someOf(where, columns), wanted, columns }, values, page, [
        "FAILED",
        "DEAD_LETTER"
      ])
    }

    const countDeadLetters = (orgId: OrgId, filter: DeadLetterFilter) => {
      const values: Array<unknown> = []
      const text = `select count(*)::int as matched,
          (count(*) filter (where (view ->> 'contradicted')::boolean))::int as contradicted
        from message_view where ${isDeadLetter(orgId, filter, values)}`
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

    const project = Effect.fnUntraced(function* (step: Step, views: ReadonlyArray<MessageView>) {
      const texts: Array<string> = []
      const iso = isoTexts()
      for (const view of views) {
        if (texts.push(textOf(view, iso)) % YIELD_EVERY === 0) yield* Effect.yieldNow
      }
      return yield* write(step, [
        literal(views.map(({ id }) => id)),
        views.map(({ orgId }) => orgId),
        literal(views.map(({ version }) => version)),
        literal(views.map(({ status }) => status)),
        literal(views.map(({ channel }) => channel)),
        views.map((view) => view.to),
        views.map(({ eventType }) => eventType),
        views.map(({ dossierId }) => dossierId),
        views.map(({ correlationId }) => correlationId),
        literal(views.map(({ createdAt }) => iso(createdAt))),
        literal(views.map(({ endedAt }) => (endedAt === null ? "NULL" : iso(endedAt)))),
        literal(views.map(({ status, endsAt }) => (status === "QUEUED" && endsAt ? iso(endsAt) : "NULL"))),
        views.map(({ status, lastError }) => (isDead(status) ? (lastError?.code ?? null) : null)),
        views.map(({ metadata }) => (metadata === null ? null : JSON.stringify(metadata))),
        literal(views.map(({ replayId }) => replayId ?? "NULL")),
        texts.join("\x1e")
      ])
    })

    const clear = clearing(derived, "messages", ["message_view", "message_count"])

    return MessageViews.of({ list, deadLetters, countDeadLetters, ofReplay, ending, ofDossier, stats, project, clear })
  })
)

type Field = Exclude<keyof MessageFilter, "metadata" | "idempotencyKey">
type Conditions = ReadonlyArray<readonly [Field, string]>

const conditions = {
  ranges: [
    ["createdAfter", "created_at >"],
    ["createdBefore", "created_at <"]
  ],
  indexed: [
    ["correlationId", "correlation_id ="],
    ["dossierId", "dossier_id ="],
    ["errorCode", "error_code ="],
    ["to", "recipient ="],
    ["eventType", "event_type ="]
  ],
  others: [
    ["status", "status ="],
    ["channel", "channel ="],
    ["updatedAfter", "(view ->> 'updatedAt')::timestamptz >"],
    ["attempts", "(view ->> 'attempts')::int >="]
  ]
} as const satisfies Readonly<Record<string, Conditions>>

/** What a page is read by. */
interface Listed {
  readonly rows: Rows
  readonly wanted: ReadonlyArray<string>
  readonly columns: Columns
  readonly entry?: string
}

/** No index has the channel: for one that the org never sent to, all its messages would be looked at, page by page. */
const wasUsed = (org: OrgId | OneAfterTheOther, channel: ChannelName, values: Array<unknown>): string =>
  `exists (select from message_count c where c.generation = ${liveGeneration("messages")}
    and c.org_id = ${orgIn(org, values)} and c.channel = $${values.push(channel)})`

/** As `project_messages` keeps it. */
const hashOf = (
  org: OrgId | OneAfterTheOther,
  entry: MessageFilter["metadata"],
  values: Array<unknown>
): string | undefined => {
  if (entry === undefined) return undefined
  const parts = [
    `${orgIn(org, values)}::text`,
    `$${values.push(entry.name)}::text`,
    `$${values.push(entry.value)}::text`
  ]
  return `md5(concat_ws(e'\\x1f', ${parts.join(", ")}))::uuid`
}

const acceptedUnder = (
  org: OrgId | OneAfterTheOther,
  key: string | undefined,
  values: Array<unknown>
): ReadonlyArray<string> =>
  key === undefined
    ? []
    : [
        `id = (select i.message_id from idempotency i where i.org_id = ${orgIn(org, values)} and i.key = $${values.push(key)})`
      ]
