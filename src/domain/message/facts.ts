/**
 * Facts of one message, oldest first. A stored fact is never edited. None holds a body or a secret, and what can name a
 * person is its forgettable part (recorded.ts).
 */
import { Schema } from "effect"
import { DeliveryError } from "../delivery/DeliveryError.ts"
import { Exchange } from "../delivery/exchange.ts"
import { RetryPolicy } from "../delivery/retry.ts"
import { ChannelName, DestinationId, EventId, MessageId, OrgId, ReplayId } from "../ids.ts"
import { ERASED, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

export const Metadata = Schema.Record(Schema.String, Schema.String)

/** The fields with which a sender describes a message: of the request, of `MessageQueued`, of the view and of lists. */
export const MessageDetails = Schema.Struct({
  eventType: Text,
  templateCode: Text,
  dossierId: Text,
  orderingKey: Text,
  correlationId: Text,
  metadata: Schema.NullOr(Metadata)
})
export type MessageDetails = typeof MessageDetails.Type

const detailNames = Object.keys(MessageDetails.fields) as ReadonlyArray<keyof MessageDetails>

const noDetails = Object.fromEntries(detailNames.map((name) => [name, null])) as MessageDetails

export const detailsOf = (from: { readonly [Name in keyof MessageDetails]?: MessageDetails[Name] }): MessageDetails => {
  // Every view needs them: filling a copy is ten times as fast as making an object from pairs.
  const details: Record<string, unknown> = { ...noDetails }
  for (const name of detailNames) details[name] = from[name] ?? null
  return details as MessageDetails
}

const error = { "error.message": ERASED }
const providerId = { providerMessageId: null }
const reason = { reason: null }

export const forgettableOfQueued = {
  to: ERASED,
  templateCode: null,
  dossierId: null,
  orderingKey: null,
  correlationId: null,
  metadata: null,
  routingKey: undefined,
  traceparent: undefined
}

const queuedFields = {
  orgId: OrgId,
  channel: ChannelName,
  to: Schema.String,
  destination: DestinationId,
  routingKey: Schema.optionalKey(Schema.String),
  eventId: Schema.optionalKey(EventId),
  /** The replay that made it, of an event that its destination had missed. */
  replayId: Schema.optionalKey(ReplayId),
  resendOf: Schema.optionalKey(MessageId),
  test: Schema.optionalKey(Schema.Literal(true)),
  ...MessageDetails.fields,
  /** The same for all messages of one ordering key at one destination. */
  line: Schema.optionalKey(Schema.String),
  retry: RetryPolicy,
  acceptedAt: Time,
  dueAt: Time,
  expiresAt: Schema.NullOr(Time),
  /** The W3C trace context of the request; attempts are linked to it, also days later. */
  traceparent: Schema.optionalKey(Schema.String)
}
export const MessageQueued = fact("MessageQueued", queuedFields, forgettableOfQueued)
export type MessageQueued = typeof MessageQueued.Type

/** Stored before any byte leaves: a crash in between burns an attempt and is visible. */
export const AttemptStarted = fact("AttemptStarted", { epoch: Schema.Int, attempt: Schema.Int })

const exchange = Schema.optionalKey(Exchange)

export const AttemptSucceeded = fact(
  "AttemptSucceeded",
  { attempt: Schema.Int, status: Schema.NullOr(Schema.Int), providerMessageId: Text, durationMs: Schema.Int, exchange },
  providerId
)

const notTaken = {
  attempt: Schema.Int,
  error: DeliveryError,
  status: Schema.NullOr(Schema.Int),
  durationMs: Schema.Int,
  exchange
}

/** `retryAt` is null when no attempt is left: the ending follows in the same append. */
export const AttemptFailed = fact("AttemptFailed", { ...notTaken, retryAt: Schema.NullOr(Time) }, error)

/** The destination did not process the attempt. It does not count: the next one has its number. */
export const AttemptDeferred = fact("AttemptDeferred", { ...notTaken, dueAt: Time }, error)

/** The worker crashed or gave up between start and settlement: whether the destination got the message is unknown. */
export const AttemptAbandoned = fact("AttemptAbandoned", {
  attempt: Schema.Int,
  reason: Schema.NonEmptyString,
  retryAt: Schema.NullOr(Time)
})

/** The destination may have taken the message and drops no duplicates: Posthaste must ask before it tries again. */
export const AttemptUnresolved = fact(
  "AttemptUnresolved",
  { attempt: Schema.Int, error: DeliveryError, durationMs: Schema.Int, exchange, reconcileAt: Time },
  error
)

/** Proven at the recipient: by the destination's own answer or by a provider's receipt. */
export const MessageDelivered = fact("MessageDelivered", { proof: Schema.Literals(["response", "receipt"]) })

/** Refused for good: by the destination's answer or by a provider's receipt. */
export const MessageFailed = fact(
  "MessageFailed",
  { by: Schema.Literals(["response", "receipt"]), error: DeliveryError },
  error
)

export const MessageDeadLettered = fact(
  "MessageDeadLettered",
  {
    reason: Schema.Literals(["attempts used up", "too old to retry", "outcome unknown", "too old"]),
    error: DeliveryError
  },
  error
)

export const MessageCancelled = fact("MessageCancelled", { reason: Text }, reason)

export const MessageExpired = fact("MessageExpired", { expiresAt: Time })

export const MessageHurried = fact("MessageHurried", { dueAt: Time })

/** A person has dealt with the dead letter: it leaves the list of dead letters. */
export const MessageDismissed = fact("MessageDismissed", { reason: Text }, reason)

export const MessageReplayed = fact(
  "MessageReplayed",
  { epoch: Schema.Int, replayedAt: Time, reason: Text, edited: Schema.Boolean, replayId: Schema.NullOr(ReplayId) },
  reason
)

/** Body and answers are erased. A message that was not sent before is never sent. */
export const MessageBodyErased = fact("MessageBodyErased", { reason: Text }, reason)

export const ReceiptStatus = Schema.Literals(["sent", "delivered", "read", "failed"])
export type ReceiptStatus = typeof ReceiptStatus.Type

/**
 * A provider's receipt, stored whatever the message's status. `epoch` null is the epoch it was recorded in; `attempt`
 * null is any attempt of that epoch.
 */
export const ReceiptRecorded = fact(
  "ReceiptRecorded",
  {
    receipt: ReceiptStatus,
    providerMessageId: Text,
    epoch: Schema.NullOr(Schema.Int),
    attempt: Schema.NullOr(Schema.Int),
    reportedAt: Time,
    error: Schema.NullOr(DeliveryError),
    contradicts: Schema.Boolean
  },
  { ...providerId, ...error }
)

export const recorded = {
  "MessageQueued@1": MessageQueued,
  "AttemptStarted@1": AttemptStarted,
  "AttemptSucceeded@1": AttemptSucceeded,
  "AttemptFailed@1": AttemptFailed,
  "AttemptDeferred@1": AttemptDeferred,
  "AttemptAbandoned@1": AttemptAbandoned,
  "AttemptUnresolved@1": AttemptUnresolved,
  "MessageDelivered@1": MessageDelivered,
  "MessageFailed@1": MessageFailed,
  "MessageDeadLettered@1": MessageDeadLettered,
  "MessageCancelled@1": MessageCancelled,
  "MessageExpired@1": MessageExpired,
  "MessageHurried@1": MessageHurried,
  "MessageDismissed@1": MessageDismissed,
  "MessageReplayed@1": MessageReplayed,
  "MessageBodyErased@1": MessageBodyErased,
  "ReceiptRecorded@1": ReceiptRecorded
} as const
export type MessageFact = FactIn<typeof recorded>
export type FactOf<T extends MessageFact["type"]> = Extract<MessageFact, { readonly type: T }>
