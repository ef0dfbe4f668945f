/** Filters for dead letters and waiting messages, as conditions on `views`. */
import type { DeadLetterFilter, WaitingFilter } from "../../../domain/replay/facts.ts"
import { conditionsOf } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"

export const views = "message_view v left join message m on m.id = v.id"

const conditions: ReadonlyArray<readonly [keyof DeadLetterFilter, string]> = [
  ["to", "m.recipient ="],
  ["channel", "v.channel ="],
  ["errorCode", "v.error_code ="],
  ["statuses", "array[v.status] <@"],
  ["after", "v.ended_at >"],
  ["before", "v.ended_at <"]
]

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

/** False, or null, for a row that does not match. */
export const waits = (filter: WaitingFilter, values: Array<unknown>): string =>
  conditionsOf(waitingConditions, filter, values).join(" and ") || "true"
