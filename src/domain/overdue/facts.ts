/**
 * Facts about the overdue backlog that one alert target watches, on the stream `overdue-<alert target>`: that its org's
 * oldest due message had waited longer than the target allows, and that this is over. A target without facts has no
 * overdue backlog.
 */
import { Schema } from "effect"
import { DestinationId, MessageId, OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

export const OverdueBegan = fact("OverdueBegan", {
  orgId: OrgId,
  /** The limit when it began. */
  limitSeconds: Schema.Int,
  /** The message that had waited longest. */
  dueAt: Schema.DateTimeUtcFromString,
  messageId: MessageId,
  destination: DestinationId
})

export const OverdueEnded = fact("OverdueEnded", { orgId: OrgId })

/** Every shape ever written. */
export const recorded = {
  "OverdueBegan@1": OverdueBegan,
  "OverdueEnded@1": OverdueEnded
} as const
export type OverdueFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<OverdueFact>(recorded)
