/**
 * Facts about the overdue backlog that one alert target watches, on the stream `overdue-<alert target>`: that its org's
 * oldest due message had waited longer than the target allows, and that this is over. A target without facts has no
 * overdue backlog.
 */
import { Schema } from "effect"
import { DestinationId, MessageId, OrgId } from "../ids.ts"

export const OverdueBegan = Schema.Struct({
  type: Schema.tag("OverdueBegan"),
  orgId: OrgId,
  /** The limit when it began. */
  limitSeconds: Schema.Int,
  /** The message that had waited longest. */
  dueAt: Schema.DateTimeUtcFromString,
  messageId: MessageId,
  destination: DestinationId
})

export const OverdueEnded = Schema.Struct({ type: Schema.tag("OverdueEnded"), orgId: OrgId })

export const OverdueFact = Schema.Union([OverdueBegan, OverdueEnded])
export type OverdueFact = typeof OverdueFact.Type

/** Every shape ever written, keyed by `type@version`. The highest version is the one we write. */
export const recorded = {
  "OverdueBegan@1": OverdueBegan,
  "OverdueEnded@1": OverdueEnded
} as const
