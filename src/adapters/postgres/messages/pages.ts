/**
 * SQL for pages of `message_view`, whose indexes are as few as can be, because they are written with each message. Every one of them begins
 * with the org, and those of all messages with the status behind it: what is in several orgs or statuses is put together from the first
 * of each. A list of all orgs is for the operator: it reads a row for each org, and then looks at some rows of those that have one of the first.
 */
import type { OrgId } from "../../../domain/ids.ts"
import { type MessageStatus, statuses } from "../../../domain/message/machine.ts"
import { isWanted, ROWS_MAX, within } from "../boundedPages.ts"
import type { Page } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"

/** In a condition: whichever org it is the turn of. */
export const each = Symbol("each org")
export type OneAfterTheOther = typeof each

/** The org's column in a query of the table `o` of orgs. */
const TURN = "o.org_id"

export const isOf = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string => `org_id = ${orgIn(org, values)}`

/** What a list is ordered by, the latest first. */
export type Columns = readonly [time: string, id: string]

/** What is shown of a message, and how many bytes it has. */
export const shownView = { columns: "view::text as view", size: "octet_length(view::text)" }

export const latest = (columns: Columns) => columns.map((column) => `${column} desc`).join(", ")

/** SQL for so many first rows of a list, in its order. How many is SQL too. */
export type Rows = (most: number | string) => string

/** The first messages of one org of which `where` is true: an index gives them in this order. */
export const someOf =
  (where: string, columns: Columns): Rows =>
  (most) =>
    `select * from message_view where ${where} order by ${latest(columns)} limit ${most}`

/**
 * The same of messages in these statuses, put together from the first ones in each: there is no index of all messages of an org, because
 * each message would be written there twice. A status is written so that the planner can't tell which it is: otherwise it may take an index
 * of those that ended badly, and pass over all that failed for one that is a dead letter.
 */
export const someOfEachStatus =
  (where: string, columns: Columns, of: ReadonlyArray<MessageStatus> = statuses): Rows =>
  (most) =>
    together(
      of.map((status) => someOf(`status = (select '${status}') and ${where}`, columns)),
      columns
    )(most)

const together =
  (parts: ReadonlyArray<Rows>, columns: Columns): Rows =>
  (most) =>
    `select * from (${parts.map((rows) => `(${rows(most)})`).join(" union all ")}) parts
      order by ${latest(columns)} limit ${most}`

/** An entry of the metadata is common when so many messages have it. */
const COMMON = 2_000

/**
 * The same of messages that have the entry of the metadata with this hash. Its index knows no order: where few have it, which the query's
 * `entry` tells, all of them are found by it, and a common one is looked for in what would be looked at without it.
 */
export const someWithEntry =
  (hash: string, where: string, columns: Columns, without: Rows): Rows =>
  (most) =>
    together(
      [
        (most) => `select * from (
            select * from message_view
            where ctid = any (array(select with_entry(array[${hash}], ${COMMON}) where (select few from entry))) offset 0
          ) found where ${where} order by ${latest(columns)} limit ${most}`,
        (most) => `select * from (${without(most)}) found where not (select few from entry)`
      ],
      columns
    )(most)

/** The query's `entry`: whether few messages have it, of one org or of all. */
export const entryOf = (org: OrgId | OneAfterTheOther, hash: string): string => {
  const hashes = org === each ? `array(select ${hash} from org o)` : `array[${hash}]`
  return `entry as materialized (select count(*) < ${COMMON} as few from with_entry(${hashes}, ${COMMON}))`
}

/** The org as a value in SQL. */
export const orgIn = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string =>
  org === each ? TURN : `$${values.push(org)}`

/** Where not every row is wanted, the rows of a stretch are shared out among so many orgs, or as many as there are; each gets at most so many. */
const ORGS = 100
const SHARE_MAX = 1_000

/**
 * The rows of one page of all orgs, as `Looked`. `rows` is the SQL for the first of the messages of the org whose turn it is. `among` leaves
 * out the orgs that have none in these statuses. The page ends where an org was looked at no further: what others have beyond that may not be
 * the next.
 */
export const pageOfAllOrgs = (
  {
    rows,
    wanted,
    columns,
    entry
  }: { rows: Rows; wanted: ReadonlyArray<string>; columns: Columns; entry?: string | undefined },
  page: Page,
  among?: ReadonlyArray<string>
): string => {
  const [time, id] = columns
  const order = latest(columns)
  const isFull = wanted.length === 0
  const orgs = isFull ? page.limit + 1 : Math.max(ORGS, page.limit + 1)
  const most = isFull ? page.limit + 1 : "(select most from share)"
  const shown = `select v.${time}, v.${id}, v.view, s.wanted, s.cut from shown s
      join message_view v on v.id = s.id and v.generation = ${liveGeneration("messages")}`
  const of = among === undefined ? "" : ` and c.status in (${among.map((status) => `'${status}'`).join(", ")})`
  return `with org as materialized (
      select distinct c.org_id from message_count c
      where c.generation = ${liveGeneration("messages")} and c.count > 0${of}
    ), ${entry === undefined ? "" : `${entry}, `}first as materialized (
      select o.org_id, v.${time}, v.${id} from org o cross join lateral (${rows(1)}) v order by ${order} limit ${orgs}
    ), share as materialized (
      select least(${SHARE_MAX}, ${ROWS_MAX} / greatest(count(*), 1)) as most from first
    ), looked as materialized (
      select v.* from first o cross join lateral (
        select ${time}, ${id}, ${isWanted(wanted)} as wanted, row_number() over (order by ${order}) as nth from (${rows(most)}) found
      ) v
    ), reached as materialized (
      select * from (
        (select ${time}, ${id} from looked where nth = ${most})
        union all (select ${time}, ${id} from first order by ${order} offset ${orgs - 1} limit 1)
      ) ends order by ${order} limit 1
    ), shown as materialized (
      select l.${time}, l.${id}, l.wanted, r.${id} is not null and l.${id} = r.${id} as cut
      from looked l left join reached r on true
      where (r.${id} is null or (l.${time}, l.${id}) >= (r.${time}, r.${id})) and (l.wanted or l.${id} = r.${id})
      order by ${order} limit ${page.limit + 1}
    )
    ${within(shown, { order, ...shownView })}`
}
