/** Filters for dead letters and for waiting messages as conditions on `message_view`: for lists, counts and replays. */
import type { OrgId } from "../../../domain/ids.ts"
import type { DeadLetterFilter, WaitingFilter } from "../../../domain/replay/facts.ts"
import { type Searched, searched } from "../boundedPages.ts"
import { conditionsOf } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"
import { isOf, type OneAfterTheOther } from "../messages/pages.ts"

const conditions: ReadonlyArray<readonly [keyof DeadLetterFilter, string]> = [
  ["channel", "channel ="],
  ["errorCode", "error_code ="],
  ["statuses", "array[status] <@"],
  ["after", "ended_at >"],
  ["before", "ended_at <"]
]

/** What ended badly, to this recipient where one is given. Values are added to `values`. */
export const isDead = (orgId: OrgId | OneAfterTheOther, to: string | undefined, values: Array<unknown>): string =>
  [
    `generation = ${liveGeneration("messages")}`,
    isOf(orgId, values),
    "status in ('FAILED', 'DEAD_LETTER')",
    ...(to === undefined ? [] : [`recipient = $${values.push(to)}`])
  ].join(" and ")

const isDismissed = ({ dismissed }: DeadLetterFilter): string =>
  `(view ->> 'dismissed') is ${dismissed === true ? "not " : ""}null`

/** The conditions of the filter alone: those that were asked for, and whether it was dismissed. */
export const isWanted = (filter: DeadLetterFilter, values: Array<unknown>): string =>
  [isDismissed(filter), ...conditionsOf(conditions, filter, values)].join(" and ")

export const isDeadLetter = (
  orgId: OrgId | OneAfterTheOther,
  { to, ...filter }: DeadLetterFilter,
  values: Array<unknown>
): string => `${isDead(orgId, to, values)} and ${isWanted(filter, values)}`

const ranges = conditions.filter(([field]) => field === "after" || field === "before")
const others = conditions.filter((condition) => !ranges.includes(condition))

/** For a list, the last to die first: those that want somebody have an index, and so have all that died, of an org and to one recipient. */
export const deadLettersBy = (
  orgId: OrgId | OneAfterTheOther,
  filter: DeadLetterFilter,
  values: Array<unknown>
): Searched => {
  const all = [isDead(orgId, filter.to, values)]
  const { found, wanted } = searched(filter, { ranges, indexed: [], others }, values)
  const wantsSomebody = filter.to === undefined && filter.dismissed !== true
  return wantsSomebody
    ? { found: [...all, isDismissed(filter), ...found], wanted }
    : { found: [...all, ...found], wanted: [isDismissed(filter), ...wanted] }
}

const waitingConditions: ReadonlyArray<readonly [keyof WaitingFilter, string]> = [
  ["to", "recipient ="],
  ["channel", "channel ="],
  ["eventType", "event_type ="],
  ["correlationId", "correlation_id ="],
  ["createdAfter", "created_at >"],
  ["createdBefore", "created_at <"]
]

/** The conditions of the filter alone, for a row of a message that waits; a row they don't hold of is null or false. */
export const waits = (filter: WaitingFilter, values: Array<unknown>): string =>
  conditionsOf(waitingConditions, filter, values).join(" and ") || "true"
