/** Filters for dead letters and for waiting messages as conditions on `views`: for lists, counts and replays. */
import type { DeadLetterFilter, WaitingFilter } from "../../../domain/replay/facts.ts"
import { conditionsOf } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"

/** What lists know of messages, and what may name a person. */
export const views = "message_view v left join message m on m.id = v.id"

const conditions: ReadonlyArray<readonly [keyof DeadLetterFilter, string]> = [
  ["to", "m.recipient ="],
  ["channel", "v.channel ="],
  ["errorCode", "v.error_code ="],
  ["statuses", "array[v.status] <@"],
  ["after", "v.ended_at >"],
  ["before", "v.ended_at <"]
]

/** The conditions of the filter alone: those that were asked for, and whether it was dismissed. Values are added to `values`. */
export const isWanted = (filter: DeadLetterFilter, values: Array<unknown>): string =>
  [`v.dismissed = ${filter.dismissed === true}`, ...conditionsOf(conditions, filter, values)].join(" and ")

/** `org` is SQL. */
export const isDeadLetter = (org: string, filter: DeadLetterFilter, values: Array<unknown>): string =>
  `v.generation = ${liveGeneration("messages")} and v.org_id = ${org} and v.status in ('FAILED', 'DEAD_LETTER')
    and ${isWanted(filter, values)}`

const waitingConditions: ReadonlyArray<readonly [keyof WaitingFilter, string]> = [
  ["to", "m.recipient ="],
  ["channel", "v.channel ="],
  ["eventType", "v.event_type ="],
  ["correlationId", "m.correlation_id ="],
  ["createdAfter", "v.created_at >"],
  ["createdBefore", "v.created_at <"]
]

/** The conditions of the filter alone, for a row of a message that waits; a row they don't hold of is null or false. */
export const waits = (filter: WaitingFilter, values: Array<unknown>): string =>
  conditionsOf(waitingConditions, filter, values).join(" and ") || "true"
