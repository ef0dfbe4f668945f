/** Facts of a lasting condition that one alert target watches, on the stream `condition-<name>-<alert target>`. */
import { Schema } from "effect"
import { DestinationId, MessageId, OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

/** `oldestDue`: the org's oldest due message waits too long. `broker`: no process reaches Posthaste's own broker. */
export const conditions = ["oldestDue", "broker"] as const
export const ConditionName = Schema.Literals(conditions)
export type ConditionName = typeof ConditionName.Type

export const ConditionBegan = fact("ConditionBegan", {
  orgId: OrgId,
  condition: ConditionName,
  /** The time from which it holds, not the time of the fact. */
  since: Schema.DateTimeUtcFromString,
  /** Of a backlog: the limit when it began, and the message that had waited longest. */
  limitSeconds: Schema.optionalKey(Schema.Int),
  messageId: Schema.optionalKey(MessageId),
  destination: Schema.optionalKey(DestinationId)
})
export type ConditionBegan = typeof ConditionBegan.Type

export const ConditionEnded = fact("ConditionEnded", { orgId: OrgId, condition: ConditionName })

export const recorded = { "ConditionBegan@1": ConditionBegan, "ConditionEnded@1": ConditionEnded } as const
export type ConditionFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<ConditionFact>(recorded)

export const journalOf = (condition: ConditionName, target: DestinationId) =>
  `condition-${condition}-${target}` as const

const streams = new RegExp(`^condition-(?:${conditions.join("|")})-(.*)$`)

export const targetOf = (stream: string): DestinationId | null => {
  const id = streams.exec(stream)?.[1]
  return id === undefined ? null : DestinationId.make(id)
}
