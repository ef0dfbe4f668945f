/** A filter for dead letters as conditions on `message_view`: for lists, counts and replays. */
import type { OrgId } from "../../../domain/ids.ts"
import type { DeadLetterFilter } from "../../../domain/replay/facts.ts"
import { conditionsOf } from "../filtering.ts"
import { liveGeneration } from "../log/generations.ts"

const conditions: ReadonlyArray<readonly [keyof DeadLetterFilter, string]> = [
  ["to", "recipient ="],
  ["channel", "channel ="],
  ["errorCode", "error_code ="],
  ["statuses", "array[status] <@"],
  ["after", "ended_at >"],
  ["before", "ended_at <"]
]

/** Values are added to `values`; only the conditions that were asked for are there. */
export const isDeadLetter = (orgId: OrgId, filter: DeadLetterFilter, values: Array<unknown>): string =>
  [
    `generation = ${liveGeneration("messages")}`,
    `org_id = $${values.push(orgId)}`,
    "status in ('FAILED', 'DEAD_LETTER')",
    ...conditionsOf(conditions, filter, values)
  ].join(" and ")

/** The conditions of the filter alone, for a row that is a dead letter of the org; a row they don't hold of is null or false. */
export const isWanted = (filter: DeadLetterFilter, values: Array<unknown>): string =>
  conditionsOf(conditions, filter, values).join(" and ") || "true"
