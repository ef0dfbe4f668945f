/**
 * SQL for pages of `message_view`, whose indexes are as few as can be, because they are written with each message. Every one of them begins
 * with the org, and those of all messages with the status behind it: what is in several orgs or statuses is put together from the first
 * of each. For a list of all orgs, which is for the operator, the first message of each org is looked up, and then the page of those orgs
 * alone that have one of the first. That reads a row for each org, and for a page of so many messages at most the square of that.
 */
import type { OrgId } from "../../../domain/ids.ts"
import { statuses } from "../../../domain/message/machine.ts"
import { liveGeneration } from "../log/generations.ts"

/** In a condition: whichever org it is the turn of. */
export const each = Symbol("each org")
export type OneAfterTheOther = typeof each

/** The org's column in a query of the table `o` of orgs. */
const TURN = "o.org_id"

export const isOf = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string => `org_id = ${orgIn(org, values)}`

const latest = (columns: ReadonlyArray<string>) => columns.map((column) => `${column} desc`).join(", ")

/**
 * SQL for the first messages of one org, the latest by `columns` first, of which `where` is true. What `first` is true of is looked up before
 * the rest: nothing else tells the planner that an entry of the metadata is rare.
 */
export const someOf =
  (where: string, columns: ReadonlyArray<string>, first?: string) =>
  (most: string): string => {
    const from = first === undefined ? "message_view" : `(select * from message_view where ${first} offset 0) found`
    return `select view, ${columns.join(", ")} from ${from} where ${where} order by ${latest(columns)} limit ${most}`
  }

/**
 * The same of messages in any status, put together from the first ones in each: there is no index of all messages of an org, because
 * each message would be written there twice.
 */
export const someOfEachStatus =
  (where: string, columns: ReadonlyArray<string>) =>
  (most: string): string =>
    `select view, ${columns.join(", ")} from unnest(array[${statuses.map((status) => `'${status}'`).join(", ")}]) s(one)
      cross join lateral (${someOf(`status = s.one and ${where}`, columns)(most)}) each_status
      order by ${latest(columns)} limit ${most}`

/** The org as a value in SQL. */
export const orgIn = (org: OrgId | OneAfterTheOther, values: Array<unknown>): string =>
  org === each ? TURN : `$${values.push(org)}`

/**
 * The views of one page of all orgs. `some` is the SQL for the first of the messages of the org whose turn it is, `columns` is what they
 * are ordered by, the latest first, and `limit` says how many there are on the page, as SQL. `among` leaves out the orgs that have none
 * in these statuses.
 */
export const pageOfAllOrgs = (
  some: (most: string) => string,
  columns: readonly [time: string, id: string],
  limit: string,
  among?: ReadonlyArray<string>
): string => {
  const order = latest(columns)
  const of = among === undefined ? "" : ` and c.status in (${among.map((status) => `'${status}'`).join(", ")})`
  return `with org as materialized (
      select distinct c.org_id from message_count c
      where c.generation = ${liveGeneration("messages")} and c.count > 0${of}
    ), latest as materialized (
      select o.org_id from org o cross join lateral (${some("1")}) v order by ${order} limit ${limit}
    )
    select v.view from latest o cross join lateral (${some(limit)}) v order by ${order} limit ${limit}`
}
