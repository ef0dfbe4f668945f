/**
 * Lists of the messages of all orgs, for the operator. Every index of `message_view` begins with the org, and one more for such lists
 * would have to be written with each message. So they are put together from those of the orgs: the first message of each org is looked up,
 * and then the page of those orgs alone that have one of the first. That reads a row for each org, and for a page of so many messages
 * at most the square of that.
 */
import type { OrgId } from "../../../domain/ids.ts"
import { liveGeneration } from "../log/generations.ts"

/** In a condition: whichever org it is the turn of. */
export const each = Symbol("each org")
export type OneAfterTheOther = typeof each

/** The org's column in a query of the table `o` of orgs. */
const TURN = "o.org_id"

export const isOf = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string => `org_id = ${orgIn(org, values)}`

/** The org as a value in SQL. */
export const orgIn = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string =>
  org === each ? TURN : `$${values.push(org)}`

/**
 * The views of one page of all orgs. `where` is true of the messages of the org whose turn it is, `columns` is what they are ordered by,
 * the latest first, and `limit` says how many there are on the page, as SQL. `statuses` leaves out the orgs that have none in them.
 * What `first` is true of is looked up before the rest: nothing else tells the planner that an entry of the metadata is rare.
 */
export const pageOfAllOrgs = (
  where: string,
  columns: readonly [time: string, id: string],
  limit: string,
  { statuses, first }: { readonly statuses?: ReadonlyArray<string>; readonly first?: string | undefined }
): string => {
  const order = columns.map((column) => `${column} desc`).join(", ")
  const of = statuses === undefined ? "" : ` and c.status in (${statuses.map((status) => `'${status}'`).join(", ")})`
  const from = first === undefined ? "message_view" : `(select * from message_view where ${first} offset 0) found`
  const some = (most: string) =>
    `(select view, ${columns.join(", ")} from ${from} where ${where} order by ${order} limit ${most})`
  return `with org as materialized (
      select distinct c.org_id from message_count c
      where c.generation = ${liveGeneration("messages")} and c.count > 0${of}
    ), latest as materialized (
      select o.org_id from org o cross join lateral ${some("1")} v order by ${order} limit ${limit}
    )
    select v.view from latest o cross join lateral ${some(limit)} v order by ${order} limit ${limit}`
}
