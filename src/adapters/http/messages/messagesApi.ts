/** The endpoints of messages as data: their requests and answers. */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { reasons, waits } from "../../../domain/message/explanation/cause.ts"
import { DeliveryError, MessageDetails } from "../../../domain/message/facts.ts"
import { statuses } from "../../../domain/message/machine.ts"
import {
  BATCH_MAX,
  BatchEntry,
  CommandRequest,
  FoundKey,
  IdempotencyKey,
  MessageRequest,
  ReplayCommand,
  ResendCommand
} from "../../api/messageRequests.ts"
import { troubles } from "../processes/troublesApi.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import {
  freshness,
  historyPaging,
  idParam,
  listOf,
  Moment,
  paging,
  projectedListOf,
  Text,
  Time
} from "../server/fields.ts"
import { ProblemBody, problemOf } from "../server/problem.ts"

const Status = Schema.Literals(statuses)

export const Message = Schema.Struct({
  id: Schema.String,
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

const Explanation = Schema.Struct({
  id: Schema.String,
  status: Status,
  at: Moment.annotate({ description: "The moment this is about." }),
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
    Schema.Struct({
      action: Schema.String,
      says: Schema.String,
      method: Schema.Literal("POST"),
      path: Schema.String
    })
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

export const StreamFact = Schema.Struct({
  version: Schema.Int,
  name: Schema.String.annotate({ description: "The stored name: the type with the version of its shape." }),
  type: Schema.String,
  at: Moment,
  data: Schema.Unknown
}).annotate({ identifier: "StreamFact" })

const BatchAnswer = Schema.Struct({
  status: Schema.Int.annotate({ description: "The status this entry would have had on its own." }),
  message: Schema.optionalKey(Message),
  problem: Schema.optionalKey(ProblemBody)
}).annotate({ identifier: "BatchAnswer" })

const Stats = Schema.Struct({
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

const send = HttpApiEndpoint.post("send", "/outbound/messages", {
  headers: Schema.Struct({ "idempotency-key": Schema.optionalKey(IdempotencyKey) }),
  payload: MessageRequest,
  success: [Message.pipe(HttpApiSchema.status(201)), Message.pipe(HttpApiSchema.status(200))],
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Send a message. 201 when it is stored; 200 with the same message when the key was used for it before.")
)

const sendBatch = HttpApiEndpoint.post("sendBatch", "/outbound/messages/batch", {
  payload: Schema.Struct({
    messages: Schema.Array(BatchEntry).check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX))
  }),
  success: Schema.Struct({ items: Schema.Array(BatchAnswer) }),
  error: bodyErrors
}).annotateMerge(about("Send up to 1,000 messages, each answered on its own and in its place."))

/** `name=value`. */
const MetadataEntry = text(1_101).check(
  Schema.isPattern(/^[^=]+=/, { message: "must be one entry, as in metadata=order%3D4711" })
)

const Attempts = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,3}$/, { message: "must be a whole number from 1 to 9999" })
).pipe(Schema.decodeTo(Schema.Number, SchemaTransformation.numberFromString))

const list = HttpApiEndpoint.get("list", "/outbound/messages", {
  query: {
    ...paging,
    status: Schema.optionalKey(Status),
    channel: Schema.optionalKey(ChannelName),
    to: Schema.optionalKey(text(512)),
    eventType: Schema.optionalKey(text(256)),
    dossierId: Schema.optionalKey(text(256)),
    correlationId: Schema.optionalKey(text(256)),
    createdAfter: Schema.optionalKey(Time),
    createdBefore: Schema.optionalKey(Time),
    updatedAfter: Schema.optionalKey(Time),
    idempotencyKey: Schema.optionalKey(FoundKey),
    metadata: Schema.optionalKey(MetadataEntry),
    errorCode: Schema.optionalKey(text(256)).annotateKey({
      description: "Of dead letters: the code of the last error."
    }),
    attempts: Schema.optionalKey(Attempts).annotateKey({
      description: "At least so many in its present epoch."
    })
  },
  success: projectedListOf(Message)
}).annotateMerge(about("List messages, newest first. Read from a projection: asOf says how far it is."))

const get = HttpApiEndpoint.get("get", "/outbound/messages/:id", {
  ...byId,
  query: { at: Schema.optionalKey(Time) },
  success: Message
}).annotateMerge(about("One message, folded from its facts: always current, or as it was at a time."))

const explanation = HttpApiEndpoint.get("explanation", "/outbound/messages/:id/explanation", {
  ...byId,
  query: { at: Schema.optionalKey(Time) },
  success: Explanation
}).annotateMerge(about("Where a message is, why, and what comes next: now, or as it was known at a time."))

const events = HttpApiEndpoint.get("events", "/outbound/messages/:id/events", {
  ...byId,
  query: historyPaging,
  success: listOf(Event)
}).annotateMerge(about("Every fact of a message, with the status it had after each."))

const attempts = HttpApiEndpoint.get("attempts", "/outbound/messages/:id/attempts", {
  ...byId,
  query: historyPaging,
  success: listOf(Attempt)
}).annotateMerge(about("Every try to deliver a message, with what the far side answered."))

const command = {
  params: idParam,
  payload: CommandRequest,
  success: Message,
  error: [problemOf(404), problemOf(409), ...bodyErrors]
}
const cancel = HttpApiEndpoint.post("cancel", "/outbound/messages/:id/cancel", command).annotateMerge(
  about("Cancel a message that has not been sent.")
)
const retryNow = HttpApiEndpoint.post("retryNow", "/outbound/messages/:id/retry-now", {
  params: idParam,
  success: Message,
  error: [problemOf(404), problemOf(409)]
}).annotateMerge(
  about("Make a message due now that waits for a retry or for its time. A pause, a circuit and a rate limit stay.")
)
const dismiss = HttpApiEndpoint.post("dismiss", "/outbound/messages/:id/dismiss", command).annotateMerge(
  about("Take a dead letter from the list of those that want somebody. It stays, and can still be replayed.")
)
const replay = HttpApiEndpoint.post("replay", "/outbound/messages/:id/replay", {
  ...command,
  payload: ReplayCommand
}).annotateMerge(about("Send a message again that ended in FAILED or DEAD_LETTER, as it was or with another body."))
const erase = HttpApiEndpoint.post("erase", "/outbound/messages/:id/erase", command).annotateMerge(
  about("Erase a message's body and the answers to it at once. Its facts stay; what was not sent is never sent.")
)

const resend = HttpApiEndpoint.post("resend", "/outbound/messages/:id/resend", {
  params: idParam,
  headers: { "idempotency-key": Schema.optionalKey(IdempotencyKey) },
  payload: ResendCommand,
  success: [Message.pipe(HttpApiSchema.status(201)), Message.pipe(HttpApiSchema.status(200))],
  error: [problemOf(404), problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Send any message again as a new one that names it, whatever became of it, perhaps to another destination.")
)

const body = HttpApiEndpoint.get("body", "/outbound/messages/:id/body", {
  ...byId,
  success: Schema.Unknown,
  error: [problemOf(404), problemOf(410)]
}).annotateMerge(about("The body of a message, byte for byte as it is delivered. 410 when it was erased."))

const stats = HttpApiEndpoint.get("stats", "/outbound/stats", { success: Stats }).annotateMerge(
  about("How many messages are in each status, per channel too, and since when the longest overdue one waits.")
)

const stream = HttpApiEndpoint.get("stream", "/streams/:stream", {
  params: { stream: Schema.String },
  query: historyPaging,
  success: listOf(StreamFact),
  error: problemOf(404)
}).annotateMerge(
  about(
    "The stored facts of a stream, such as message-<id>, circuit-<destination> or replay-<id>, as they were written. What is not about messages needs the scope that guards it too, such as endpoints:read for a circuit."
  )
)

export const messagesApi = HttpApiGroup.make("messages")
  .add(
    send,
    sendBatch,
    list,
    get,
    explanation,
    events,
    attempts,
    cancel,
    retryNow,
    replay,
    dismiss,
    resend,
    erase,
    body,
    stats,
    stream
  )
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Messages" }))
