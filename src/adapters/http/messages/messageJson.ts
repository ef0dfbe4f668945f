/** What a message, its facts, attempts and explanation are in the API: their shapes, and how each is made. */
import { type Effect, Schema } from "effect"
import { typeOf } from "../../../application/log/feed.ts"
import type { readAttempts } from "../../../application/messages/readAttempts.ts"
import type { StreamFact as StoredStreamFact } from "../../../application/messages/readStream.ts"
import { DeliveryError } from "../../../domain/delivery/DeliveryError.ts"
import type { Exchange } from "../../../domain/delivery/exchange.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { type Cause as KnownCause, reasons, waits } from "../../../domain/message/explanation/cause.ts"
import type { Explanation as Explained } from "../../../domain/message/explanation/explain.ts"
import { MessageDetails } from "../../../domain/message/facts.ts"
import { type MessageStatus, statuses } from "../../../domain/message/machine.ts"
import { toRecorded } from "../../../domain/message/recorded.ts"
import type { Status as AnyStatus } from "../../../domain/message/transitions.ts"
import type { StoredFact } from "../../../domain/message/view.ts"
import { wholeOf } from "../../../domain/recorded.ts"
import { troubles } from "../processes/troublesApi.ts"
import { freshness, Id, Moment, Text } from "../server/fields.ts"
import { ProblemBody } from "../server/problem.ts"

export const Status = Schema.Literals(statuses)

export const Message = Schema.Struct({
  id: Id,
  orgId: Schema.String,
  channel: ChannelName,
  to: Schema.String,
  destination: Schema.String.annotate({ description: "The id of the endpoint, target or account it is sent through." }),
  routingKey: Text,
  resendOf: Text.annotate({ description: "The message that this one sends again." }),
  test: Schema.Boolean.annotate({ description: "It tests its endpoint: nothing happened." }),
  status: Status,
  epoch: Schema.Int,
  attempts: Schema.Int,
  attemptsMax: Schema.Int,
  nextAttemptAt: Schema.NullOr(Moment),
  lastError: Schema.NullOr(DeliveryError),
  providerMessageId: Text,
  ...MessageDetails.fields,
  deliverAt: Schema.NullOr(Moment),
  expiresAt: Schema.NullOr(Moment),
  endsAt: Schema.NullOr(Moment).annotate({
    description:
      "When it ends by itself if it still waits then: at expiresAt, or by its age. Null when it does not wait."
  }),
  createdAt: Moment,
  updatedAt: Moment,
  lastAttemptAt: Schema.NullOr(Moment).annotate({ description: "When the last attempt was started." }),
  endedAt: Schema.NullOr(Moment).annotate({
    description: "When it came to its ending; null again once it is replayed."
  }),
  deliveredAt: Schema.NullOr(Moment),
  readAt: Schema.NullOr(Moment),
  bodyErased: Schema.Boolean,
  contradicted: Schema.Boolean.annotate({
    description: "A provider's receipt says the opposite of the status. Look before you replay."
  }),
  dismissed: Schema.Boolean.annotate({ description: "A dead letter that a person wants no more of." }),
  eventId: Text.annotate({ description: "The event it tells of; null when it was sent by itself." })
}).annotate({ identifier: "Message" })

export const Event = Schema.Struct({
  version: Schema.Int,
  type: Schema.String,
  at: Moment,
  data: Schema.Unknown,
  status: Status
}).annotate({ identifier: "Event" })

export const Attempt = Schema.Struct({
  number: Schema.Int,
  epoch: Schema.Int,
  startedAt: Moment,
  endedAt: Schema.NullOr(Moment),
  outcome: Schema.NullOr(Schema.Literals(["succeeded", "failed", "deferred", "abandoned", "unresolved"])),
  error: Schema.NullOr(DeliveryError),
  request: Schema.NullOr(
    Schema.Struct({
      method: Text,
      url: Text.annotate({ description: "As it was then, without user and parameters." }),
      headers: Schema.NullOr(Schema.Record(Schema.String, Schema.String)).annotate({
        description: "As they were sent; *** stands for a signature and for what the owner of the destination set."
      }),
      sentAt: Moment,
      address: Text.annotate({
        description: "The address and port that was called; null where there was no connection."
      })
    })
  ).annotate({ description: "What was called. Null where nothing was, or nobody lived to tell." }),
  response: Schema.Struct({
    status: Schema.NullOr(Schema.Int),
    headers: Schema.NullOr(Schema.Record(Schema.String, Schema.String)).annotate({
      description: "At most 32, without cookies and tokens. Null for an empty answer with none but the usual ones."
    }),
    body: Text
  }),
  timing: Schema.NullOr(
    Schema.Struct({
      dnsMs: Schema.NullOr(Schema.Int),
      connectMs: Schema.NullOr(Schema.Int),
      tlsMs: Schema.NullOr(Schema.Int),
      firstByteMs: Schema.NullOr(Schema.Int).annotate({ description: "From the request to the status of its answer." }),
      totalMs: Schema.NullOr(Schema.Int)
    })
  ).annotate({ description: "Null parts were not reached, or a connection was there already." })
}).annotate({ identifier: "Attempt" })

const cause = {
  reason: Schema.Literals(reasons),
  says: Schema.String.annotate({ description: "The reason in a sentence. Times are in since and until." }),
  since: Schema.NullOr(Moment),
  until: Schema.NullOr(Moment).annotate({ description: "When it ends by itself; null when it does not." }),
  waitsFor: Schema.NullOr(Schema.Literals(waits)).annotate({ description: "Null for a message that has ended." })
}

const Cause = Schema.Struct(cause).annotate({ identifier: "Cause" })

export const Explanation = Schema.Struct({
  id: Id,
  status: Status,
  at: Moment.annotateKey({ description: "The moment this is about." }),
  ...cause,
  also: Schema.Array(Cause).annotate({ description: "What else would hold it, were the first reason gone." }),
  next: Schema.String.annotate({ description: "What happens next by itself." }),
  before: Schema.NullOr(Schema.Struct({ id: Schema.String, status: Status })).annotate({
    description: "The message with the same ordering key that goes first."
  }),
  ahead: Schema.NullOr(Schema.Int).annotate({
    description: "How many messages of its destination are due before it, 10,000 at most; null when it does not wait."
  }),
  actions: Schema.Array(
    Schema.Struct({ action: Schema.String, says: Schema.String, method: Schema.Literal("POST"), path: Schema.String })
  ).annotate({ description: "What a person can do, each with its request." }),
  restored: Schema.NullOr(Schema.Struct({ savedAt: Moment, noticedAt: Moment, says: Schema.String })).annotate({
    description:
      "Of a message that had not ended in a backup from which the database was restored: it may have been sent in between."
  }),
  unknown: Schema.Array(Schema.String).annotate({
    description: "What could not be looked up. Of an earlier time that is the queue, the rate limit and the workers."
  }),
  troubles
}).annotate({ identifier: "Explanation" })

export const BatchAnswer = Schema.Struct({
  status: Schema.Int.annotate({ description: "The status this entry would have had on its own." }),
  message: Schema.optionalKey(Message),
  problem: Schema.optionalKey(ProblemBody)
}).annotate({ identifier: "BatchAnswer" })

export const StreamFact = Schema.Struct({
  version: Schema.Int,
  name: Schema.String.annotate({ description: "The stored name: the type with the version of its shape." }),
  type: Schema.String,
  at: Moment,
  data: Schema.Unknown
}).annotate({ identifier: "StreamFact" })

export const Stats = Schema.Struct({
  byStatus: Schema.Record(Schema.String, Schema.Int),
  byChannel: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Int)).annotate({
    description: "The same counts for each channel that has messages."
  }),
  oldestDueAt: Schema.NullOr(Moment).annotate({
    description:
      "Since when the longest overdue message waits, as the queue itself says now: asOf is that of the counts."
  }),
  receipts: Schema.Struct({ waiting: Schema.Int, parked: Schema.Int }).annotate({
    description: "Of providers: those still to be applied, and those of the last week whose message was never found."
  }),
  ...freshness,
  troubles
}).annotate({ identifier: "Stats" })

export const factJson = (fact: StoredStreamFact) => ({
  version: fact.version,
  name: fact.name,
  type: typeOf(fact),
  at: fact.at,
  data: JSON.parse(fact.data) as unknown
})

export const eventJson = (step: StoredFact & { readonly status: AnyStatus }) => {
  const { version, at, fact } = step
  const recorded = toRecorded(fact)
  const { name: _, ...event } = factJson({ version, at, name: recorded.name, data: wholeOf(recorded) })
  // After a fact a message is never NEW.
  return { ...event, status: step.status as MessageStatus }
}

export const attemptJson = ({
  status,
  durationMs,
  exchange,
  answer,
  ...attempt
}: Effect.Success<ReturnType<typeof readAttempts>>["items"][number]) => ({
  ...attempt,
  response: { status, headers: answer?.headers ?? null, body: answer?.body || null },
  timing: exchange === null ? null : timingOf(exchange, durationMs)
})

const timingOf = ({ dnsMs, connectMs, tlsMs, firstByteMs }: Exchange, totalMs: number | null) => ({
  dnsMs: dnsMs ?? null,
  connectMs: connectMs ?? null,
  tlsMs: tlsMs ?? null,
  firstByteMs: firstByteMs ?? null,
  totalMs
})

const causeJson = ({ reason, says, since, until, waitsFor }: KnownCause) => ({ reason, says, since, until, waitsFor })

export const explanationJson = (explanation: Explained) => {
  const { id, status, at, also, next, before, ahead, actions, restored, unknown } = explanation
  return {
    id,
    status,
    at,
    ...causeJson(explanation),
    also: also.map(causeJson),
    next,
    before,
    ahead,
    actions: actions.map(({ action, on, id: of, says }) => ({
      action,
      says,
      method: "POST" as const,
      path: `/api/v1/${on === "message" ? "outbound/messages" : "destinations"}/${of}/${action}`
    })),
    restored,
    unknown
  }
}
