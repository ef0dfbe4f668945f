/**
 * Facts about one replay: a job that sends dead letters again. `ReplayRequested` opens its journal and
 * fixes how many there are; which ones stands beside it, numbered from 1 in the order they were accepted.
 *
 * What becomes of each message is told by its own stream (`MessageReplayed` names the job), not here.
 */
import { Schema } from "effect"
import { ChannelName, MessageId, OrgId } from "../ids.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** Which dead letters are meant. `after` and `before` are about the time they died; a field left out asks nothing. */
export const DeadLetterFilter = Schema.Struct({
  to: Schema.optionalKey(Schema.String),
  channel: Schema.optionalKey(ChannelName),
  errorCode: Schema.optionalKey(Schema.String),
  after: Schema.optionalKey(Time),
  before: Schema.optionalKey(Time)
})
export type DeadLetterFilter = typeof DeadLetterFilter.Type

/** What was asked for: all that match, or these. */
export const ReplaySelection = Schema.Union([
  Schema.Struct({ filter: DeadLetterFilter }),
  Schema.Struct({ ids: Schema.Array(MessageId) })
])
export type ReplaySelection = typeof ReplaySelection.Type

export const ReplayRequested = Schema.Struct({
  type: Schema.tag("ReplayRequested"),
  orgId: OrgId,
  selection: ReplaySelection,
  reason: Text,
  /** How many dead letters it was for; the set does not change any more. */
  matched: Schema.Int,
  requestedAt: Time
})
export type ReplayRequested = typeof ReplayRequested.Type

/** The messages numbered `from + 1` to `to` are dealt with. */
export const ReplayAdvanced = Schema.Struct({
  type: Schema.tag("ReplayAdvanced"),
  from: Schema.Int,
  to: Schema.Int,
  /** Of these, so many were given a new epoch by this job. */
  replayed: Schema.Int,
  /** And so many were not dead any more, or had nothing left to send. */
  skipped: Schema.Int
})

export const ReplayCompleted = Schema.Struct({ type: Schema.tag("ReplayCompleted") })

/** No further message is replayed; those that were stay so. */
export const ReplayCancelled = Schema.Struct({ type: Schema.tag("ReplayCancelled"), reason: Text })

export const ReplayFact = Schema.Union([ReplayRequested, ReplayAdvanced, ReplayCompleted, ReplayCancelled])
export type ReplayFact = typeof ReplayFact.Type
export type FactOf<T extends ReplayFact["type"]> = Extract<ReplayFact, { readonly type: T }>

/** Every shape ever written, keyed by `type@version`. */
export const recorded = {
  "ReplayRequested@1": ReplayRequested,
  "ReplayAdvanced@1": ReplayAdvanced,
  "ReplayCompleted@1": ReplayCompleted,
  "ReplayCancelled@1": ReplayCancelled
} as const
