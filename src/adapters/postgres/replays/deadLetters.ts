/** A filter for dead letters as conditions on `message_view`, for whoever lists, counts or replays them. */
import { DateTime } from "effect"
import type { OrgId } from "../../../domain/ids.ts"
import type { DeadLetterFilter } from "../../../domain/replay/facts.ts"
import { liveGeneration } from "../log/generations.ts"

const conditions: ReadonlyArray<readonly [keyof DeadLetterFilter, string]> = [
  ["to", "recipient ="],
  ["channel", "channel ="],
  ["errorCode", "error_code ="],
  ["after", "ended_at >"],
  ["before", "ended_at <"]
]

/** Values are added to `values`; only the conditions that were asked for are there. */
export const isDeadLetter = (orgId: OrgId, filter: DeadLetterFilter, values: Array<unknown>): string => {
  values.push(orgId)
  const where = [
    `generation = ${liveGeneration("messages")}`,
    `org_id = $${values.length}`,
    "status in ('FAILED', 'DEAD_LETTER')"
  ]
  for (const [field, condition] of conditions) {
    const value = filter[field]
    if (value === undefined) continue
    values.push(DateTime.isDateTime(value) ? DateTime.formatIso(value) : value)
    where.push(`${condition} $${values.length}`)
  }
  return where.join(" and ")
}
