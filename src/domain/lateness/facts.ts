/**
 * Facts about the lateness that one alert target watches, on the stream `lateness-<alert target>`: that its org's
 * oldest due message had waited longer than the target allows, and that this is over. A target nobody wrote about
 * is calm.
 */
import { Schema } from "effect"
import { DestinationId, MessageId, OrgId } from "../ids.ts"

export const LatenessBegan = Schema.Struct({
  type: Schema.tag("LatenessBegan"),
  orgId: OrgId,
  /** What was allowed when it began. */
  limitSeconds: Schema.Int,
  /** Of the message that had waited longest. */
  dueAt: Schema.DateTimeUtcFromString,
  messageId: MessageId,
  destination: DestinationId
})

export const LatenessEnded = Schema.Struct({ type: Schema.tag("LatenessEnded"), orgId: OrgId })

export const LatenessFact = Schema.Union([LatenessBegan, LatenessEnded])
export type LatenessFact = typeof LatenessFact.Type

/** Every shape ever written, keyed by `type@version`. The highest version is the one we write. */
export const recorded = {
  "LatenessBegan@1": LatenessBegan,
  "LatenessEnded@1": LatenessEnded
} as const
