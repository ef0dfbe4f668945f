/**
 * Facts of one replay job: it replays dead letters, sends events to a destination that missed them, or dismisses, sends
 * elsewhere or cancels messages. `ReplayRequested` fixes their number; they stand beside the journal, numbered from 1
 * in the order they were accepted or published.
 */
import { Schema } from "effect"
import { ChannelName, DestinationId, MessageId, OrgId } from "../ids.ts"
import { codecOf, ERASED, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

export const deadStatuses = ["FAILED", "DEAD_LETTER"] as const

/** `after` and `before` bound the time of death; an absent field selects all. */
export const DeadLetterFilter = Schema.Struct({
  to: Schema.optionalKey(Schema.String),
  channel: Schema.optionalKey(ChannelName),
  errorCode: Schema.optionalKey(Schema.String),
  statuses: Schema.optionalKey(Schema.Array(Schema.Literals(deadStatuses))),
  dismissed: Schema.optionalKey(Schema.Boolean),
  after: Schema.optionalKey(Time),
  before: Schema.optionalKey(Time)
})
export type DeadLetterFilter = typeof DeadLetterFilter.Type

const instead = {
  dismiss: Schema.optionalKey(Schema.Literal(true)),
  /** They are sent to this destination as new messages, and dismissed. */
  sendTo: Schema.optionalKey(DestinationId)
}

const DeadLetterSelection = Schema.Union([
  Schema.Struct({ filter: DeadLetterFilter, ...instead }),
  Schema.Struct({ ids: Schema.Array(MessageId), ...instead })
])
export type DeadLetterSelection = typeof DeadLetterSelection.Type

/** The events from `since` on that the destination wants and never had a message of. */
export const MissedEvents = Schema.Struct({ to: DestinationId, since: Time })
export type MissedEvents = typeof MissedEvents.Type

export const WaitingFilter = Schema.Struct({
  to: Schema.optionalKey(Schema.String),
  channel: Schema.optionalKey(ChannelName),
  eventType: Schema.optionalKey(Schema.String),
  correlationId: Schema.optionalKey(Schema.String),
  createdAfter: Schema.optionalKey(Time),
  createdBefore: Schema.optionalKey(Time)
})
export type WaitingFilter = typeof WaitingFilter.Type

/** `waiting` messages are cancelled. */
export const ReplaySelection = Schema.Union([
  ...DeadLetterSelection.members,
  Schema.Struct({ missed: MissedEvents }),
  Schema.Struct({ waiting: WaitingFilter })
])
export type ReplaySelection = typeof ReplaySelection.Type

export const ReplayRequested = fact(
  "ReplayRequested",
  {
    orgId: OrgId,
    selection: ReplaySelection,
    reason: Text,
    /** The number of selected dead letters, events or messages; it never changes. */
    matched: Schema.Int,
    requestedAt: Time
  },
  {
    reason: null,
    "selection.filter.to": ERASED,
    "selection.waiting.to": ERASED,
    "selection.waiting.correlationId": ERASED
  }
)
export type ReplayRequested = typeof ReplayRequested.Type

/** Items `from + 1` to `to` are done. */
export const ReplayAdvanced = fact("ReplayAdvanced", {
  from: Schema.Int,
  to: Schema.Int,
  replayed: Schema.Int,
  /** Items that were gone, had come another way, or had no body to send. */
  skipped: Schema.Int
})

export const ReplayCompleted = fact("ReplayCompleted", {})

export const ReplayCancelled = fact("ReplayCancelled", { reason: Text }, { reason: null })

export const recorded = {
  "ReplayRequested@1": ReplayRequested,
  "ReplayAdvanced@1": ReplayAdvanced,
  "ReplayCompleted@1": ReplayCompleted,
  "ReplayCancelled@1": ReplayCancelled
} as const
export type ReplayFact = FactIn<typeof recorded>
export type FactOf<T extends ReplayFact["type"]> = Extract<ReplayFact, { readonly type: T }>

export const { toRecorded, fromRecorded } = codecOf<ReplayFact>(recorded)
