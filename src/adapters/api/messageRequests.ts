/** Requests about messages, by any way in: shapes, decoding, answers. */
import { Schema } from "effect"
import {
  type Acceptance,
  type MessageRequest as AcceptedRequest,
  OWN_KEYS
} from "../../application/accept/acceptMessage.ts"
import { brokerText, headerText, Retry, text } from "../../application/ports/fields.ts"
import { ChannelName } from "../../domain/ids.ts"
import { detailsOf } from "../../domain/message/facts.ts"
import type { MessageView } from "../../domain/message/view.ts"
import { decoderOf, verbatim } from "./decoding.ts"
import { maybe, optional, Reason, Time } from "./fields.ts"
import { blocked, invalidFields, keyReused, orgSuspended, type Problem } from "./problem.ts"

export const BATCH_MAX = 1000

export const metadata = Schema.Record(text(100), Schema.String.check(Schema.isMaxLength(1000))).check(
  Schema.isMaxProperties(50, { message: "must have at most 50 entries" }),
  Schema.makeFilter(
    (record) =>
      Object.values(record).every((value) => value.isWellFormed() && !value.includes("\0")) ||
      "must hold well-formed text without NUL"
  )
)

const AnyKey = headerText(255)

export const IdempotencyKey = AnyKey.check(
  Schema.makeFilter((key) => !key.startsWith(OWN_KEYS) || `must not begin with ${OWN_KEYS}, which is Posthaste's own`)
)

export const ofKey = "Every request with the same key means the same one; repeat it safely."

/** A key to find a message by may be one of Posthaste's own. */
export const FoundKey = AnyKey

/** The rule for a key beside a request. */
export const keyRule = `must be 1 to 255 printable ASCII characters without spaces at the ends, and not begin with ${OWN_KEYS}`

/** Fields of messages and events alike. */
export const commonFields = {
  dossierId: optional(text(256), "The business case it belongs to, by the id its system gives it."),
  orderingKey: optional(text(256), "Messages to one destination with the same key go one after the other."),
  correlationId: optional(headerText(256), "Sent along to the receiver, so that both sides name one thing alike."),
  metadata: optional(metadata, "Names and values of the caller's own, to find messages by."),
  deliverAt: optional(Time, "Not before this time."),
  expiresAt: optional(Time, "Not after this time.")
}

const example = {
  channel: "webhook",
  to: "97a25ca8-c020-40d6-9459-ea2cadffe0da",
  eventType: "order.paid",
  payloadJson: { order: 4711, total: 99.9 }
}

const requestFields = {
  channel: ChannelName.annotateKey({ description: "The name of a channel, as GET /channels lists them." }),
  to: text(512).annotateKey({
    description:
      "For the webhook channel the id of one of the org's webhook endpoints, for the http channel of one of its HTTP targets, for the amqp channel of one of its AMQP targets, for the whatsapp channel a phone number with its country code."
  }),
  payloadJson: Schema.Unknown.annotate(verbatim).annotateKey({
    description:
      "Any JSON value. It is delivered byte for byte as it is written here. For the whatsapp channel {language, components?} beside a templateCode, or {text}; from names the account when there are several."
  }),
  routingKey: optional(brokerText, "For the amqp channel: takes the place of its target's routing key."),
  eventType: optional(headerText(256), "The type of the event it tells of, such as order.paid."),
  templateCode: optional(text(256), "The template of a WhatsApp message."),
  ...commonFields,
  retry: optional(Retry, "Its own retry policy, in place of its destination's.")
}

export const MessageRequest = Schema.Struct(requestFields).annotate({
  identifier: "MessageRequest",
  examples: [{ ...example, correlationId: "order-4711" }]
})

/** In a batch each entry brings its own key. */
export const batchExamples = [{ ...example, idempotencyKey: "order-4711-paid" }]

export const BatchEntry = Schema.Struct({ ...requestFields, idempotencyKey: optional(IdempotencyKey, ofKey) }).annotate(
  { identifier: "BatchEntry", examples: batchExamples }
)

export const CommandRequest = Reason.annotate({
  identifier: "CommandRequest",
  examples: [{ reason: "the shop is up again" }]
})

export const ReplayCommand = Schema.Struct({
  ...CommandRequest.fields,
  payloadJson: maybe(
    Schema.Unknown.annotate(verbatim),
    "Any JSON value, delivered byte for byte in place of the body before, which is not kept."
  )
}).annotate({ identifier: "ReplayCommand", examples: [{ reason: "the shop is up again" }] })

export const ResendCommand = Schema.Struct({
  to: optional(text(512), "Another destination of the same channel. A key needs messages:send for it."),
  payloadJson: maybe(
    Schema.Unknown.annotate(verbatim),
    "Any JSON value, delivered byte for byte in place of the old message's. A key needs messages:send for it."
  )
}).annotate({ identifier: "ResendCommand", examples: [{}] })

export const decodeResend = decoderOf(ResendCommand)
export const decodeRequest = decoderOf(MessageRequest)
export const decodeEntry = decoderOf(BatchEntry)
export const decodeReplay = decoderOf(ReplayCommand)

/** `body`: the text of `payloadJson` as it was written. */
export const requestOf = (
  request: typeof MessageRequest.Type,
  body: string,
  idempotencyKey: string | null
): AcceptedRequest => ({
  channel: request.channel,
  to: request.to,
  ...(request.routingKey != null && { routingKey: request.routingKey }),
  ...detailsOf(request),
  deliverAt: request.deliverAt ?? null,
  expiresAt: request.expiresAt ?? null,
  retry: request.retry ?? null,
  body,
  idempotencyKey
})

export type Answer =
  | { readonly status: number; readonly message: ReturnType<typeof messageJson>; readonly problem?: undefined }
  | { readonly status: number; readonly problem: Problem; readonly message?: undefined }

/** `path`: the message's place in the request. */
export const answerTo = (acceptance: Acceptance, path = ""): Answer => {
  switch (acceptance.type) {
    case "Accepted":
      return { status: 201, message: messageJson(acceptance.message) }
    case "AlreadyAccepted":
      return { status: 200, message: messageJson(acceptance.message) }
    case "KeyReused":
      return refusal(keyReused())
    case "Refused":
      return refusal(
        invalidFields(acceptance.faults.map(({ field, reason }) => ({ field: `${path}${field}`, reason })))
      )
    case "Blocked":
      return refusal(blocked(acceptance.fact, path))
    case "Suspended":
      return refusal(orgSuspended(acceptance.reason))
  }
}

export const refusal = (problem: Problem): Answer => ({ status: problem.body.status, problem })

/** A message as every way out shows it. A view stored before a field existed lacks it. */
export const messageJson = ({ version: _, replayId: __, ...view }: MessageView) => {
  const { id, orgId, channel, to, destination, routingKey = null, resendOf = null, test = false, ...rest } = view
  return {
    ...{ id, orgId, channel, to, destination, routingKey, resendOf, test },
    ...rest,
    ...detailsOf(view),
    deliverAt: view.deliverAt ?? null,
    endsAt: view.endsAt ?? null,
    lastAttemptAt: view.lastAttemptAt ?? null,
    deliveredAt: view.deliveredAt ?? null,
    readAt: view.readAt ?? null,
    dismissed: view.dismissed ?? false,
    eventId: view.eventId ?? null
  }
}
