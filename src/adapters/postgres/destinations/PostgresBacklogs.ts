import { DateTime, Effect, Layer } from "effect"
import {
  type Backlog,
  type BacklogFilter,
  Backlogs,
  type Sort,
  type Turn,
  WAITING_MAX
} from "../../../application/ports/Backlogs.ts"
import type { DestinationId, OrgId } from "../../../domain/ids.ts"
import { boundedRows, type Looked, pageOfRows } from "../boundedPages.ts"
import { conditionsOf, type Page, pageOf } from "../filtering.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"

/** `name` is a lane in SQL; a message behind another of its line is not in `ready`. */
const backlogOf = (name: string) => `least(${WAITING_MAX},
      ready_in(${name}, ${WAITING_MAX}) + behind_in(${name}, ${WAITING_MAX}))::int as waiting,
    (select r.due_at from ready r where r.lane = ${name} order by r.lane, r.due_at, r.message_id limit 1) as "oldestDueAt"`
// Few batches of some hundred messages each.
const held = `select h.lane, count(*)::int as n from claim c cross join lateral unnest(c.lanes) h(lane) group by h.lane`

const ofStatement = prepared`select ${backlogOf("$1::uuid")},
    coalesce((select n from (${held}) held where held.lane = $1), 0) as "inFlight"`
const turnStatement = prepared`select (
      select h.message_id from line_entry e
      cross join lateral (
        select h.message_id from line_entry h where h.lane = e.lane and h.line = e.line order by h.lane, h.line, h.nth limit 1
      ) h
      where e.message_id = $2::uuid and h.message_id <> e.message_id
    ) as head,
    (select count(*) from (
      select 1 from ready r where r.lane = $1::uuid and (r.due_at, r.message_id) < ($3::timestamptz, $2::uuid) limit ${WAITING_MAX}
    ) earlier)::int as ahead`

interface Row extends Backlog {
  readonly destination: DestinationId
}

/** Destinations without a backlog come last. */
const NEVER = "9999-12-31T00:00:00.000Z"

const orders: Readonly<
  Record<Exclude<Sort, "id">, { readonly order: string; readonly beyond: string; readonly key: (row: Row) => string }>
> = {
  waiting: {
    order: "waiting desc, destination",
    beyond: "(waiting < $1::int or waiting = $1::int and destination > $2)",
    key: ({ waiting }) => String(waiting)
  },
  oldest: {
    order: "oldest, destination",
    beyond: "(oldest, destination) > ($1::timestamptz, $2)",
    key: ({ oldestDueAt }) => (oldestDueAt === null ? NEVER : DateTime.formatIso(oldestDueAt))
  }
}

/** Looked at for a page by id: each takes some blocks. */
const LANES = 1_000

const conditionsById: ReadonlyArray<readonly [keyof BacklogFilter, string]> = [
  ["channel", "channel ="],
  ["paused", "paused ="],
  ["circuit", "coalesce((select l.circuit from lane l where l.lane = found.id), 'CLOSED') ="],
  ["waiting", "(ready_in(found.id, 1) + behind_in(found.id, 1) > 0) ="]
]

const conditions: ReadonlyArray<readonly [keyof BacklogFilter, string]> = [
  ["channel", "d.channel ="],
  ["paused", "d.paused ="],
  ["circuit", "coalesce(l.circuit, 'CLOSED') ="],
  ["waiting", "(ready_in(d.id, 1) + behind_in(d.id, 1) > 0) ="]
]

export const layer = Layer.effect(
  Backlogs,
  Effect.gen(function* () {
    const { reads } = yield* Postgres

    /** Counts backlogs only of destinations that are shown. */
    const listById = (orgId: OrgId | null, filter: BacklogFilter, page: Page) => {
      const values: Array<unknown> = []
      const isLiving = "removed_at is null"
      const where = orgId === null ? ["true"] : [isLiving, `org_id = $${values.push(orgId)}`]
      if (page.cursor !== null) where.push(`id > $${values.push(page.cursor.slice(1))}::uuid`)
      const wanted = [...(orgId === null ? [isLiving] : []), ...conditionsOf(conditionsById, filter, values)]
      const rows = (most: number) => `select * from destination where ${where.join(" and ")} order by id limit ${most}`
      const found = boundedRows({ rows, wanted, order: "id", columns: "id", most: LANES }, page)
      const text = `select d.id as destination, b.*, coalesce(held.n, 0) as "inFlight", d.wanted, d.cut
        from (${found}) d cross join lateral (select ${backlogOf("d.id")}) b left join (${held}) held on held.lane = d.id
        order by d.id`
      return reading(reads.query<Row & Looked>({ text }, values), (rows) =>
        pageOfRows(
          rows,
          page,
          ({ wanted: _, cut: __, ...row }): Row => row,
          ({ destination }) => `/${destination}`
        )
      )
    }

    const list = (orgId: OrgId | null, filter: BacklogFilter, sort: Sort, page: Page) => {
      if (sort === "id") return listById(orgId, filter, page)
      const { order, beyond, key } = orders[sort]
      const values: Array<unknown> = [page.limit + 1]
      const where = [
        "d.removed_at is null",
        ...(orgId === null ? [] : [`d.org_id = $${values.push(orgId)}`]),
        ...conditionsOf(conditions, filter, values)
      ]
      const [value, id] = page.cursor === null ? [null, null] : page.cursor.split("/")
      const bound = page.cursor === null ? [] : [`$${values.push(value)}`, `$${values.push(id)}::uuid`]
      const after = page.cursor === null ? "true" : beyond.replace(/\$([12])/g, (_, nth) => bound[Number(nth) - 1]!)
      const text = `select destination, waiting, "oldestDueAt", coalesce(held.n, 0) as "inFlight" from (
          select *, coalesce("oldestDueAt", '${NEVER}') as oldest from (
            select d.id as destination, b.* from destination d left join lane l on l.lane = d.id
            cross join lateral (select ${backlogOf("d.id")}) b
            where ${where.join(" and ")}
          ) counted
        ) sorted left join (${held}) held on held.lane = destination
        where ${after} order by ${order} limit $1`
      return reading(reads.query<Row>({ text }, values), (rows) =>
        pageOf(
          rows,
          page,
          (row) => row,
          (last) => `${key(last)}/${last.destination}`
        )
      )
    }

    return Backlogs.of({
      of: (destination) => reading(reads.query<Backlog>(ofStatement, [destination]), ([row]) => row!),
      list,
      turn: (destination, message, dueAt) =>
        reading(reads.query<Turn>(turnStatement, [destination, message, DateTime.formatIso(dueAt)]), ([row]) => row!)
    })
  })
)
