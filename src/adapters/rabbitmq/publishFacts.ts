/**
 * Publishes the facts of messages to `posthaste.events` as CloudEvents 1.0, and dead letters to
 * `posthaste.dead-letters`, by the routing key `<org>.<channel>.<STATUS>`. They are confirmed in order before the log
 * is read further.
 */
import { DateTime, Effect, Schema } from "effect"
import type { Envelope } from "rabbitmq-client"
import { publishFacts as following, type OutgoingFact } from "../../application/log/publishFacts.ts"
import type { Link } from "./client/connect.ts"
import { publisher } from "./client/publisher.ts"
import { DEAD_LETTERS, EVENTS } from "./topology.ts"

class NotPublished extends Schema.TaggedError<NotPublished>()("NotPublished", { reason: Schema.String }) {
  override get message(): string {
    return `the broker has not confirmed the facts (${this.reason})`
  }
}

type Publication = readonly [Envelope & { readonly messageId: string }, Buffer]

export const publishFacts = Effect.fnUntraced(function* ({ publishing }: { readonly publishing: Link }) {
  const { publishAll } = yield* publisher(publishing)
  return yield* following(
    Effect.fnUntraced(function* (facts: ReadonlyArray<OutgoingFact>) {
      const published = yield* publishAll(facts.flatMap(publicationsOf))
      const failed = published.find(({ type }) => type !== "Confirmed")
      if (failed !== undefined) return yield* new NotPublished({ reason: failed.type })
    })
  )
})

const publicationsOf = (fact: OutgoingFact): ReadonlyArray<Publication> => [
  asEvent(fact),
  ...(fact.deadLetter === null ? [] : [asDeadLetter(fact, fact.deadLetter)])
]

const keyOf = ({ queued, status }: OutgoingFact): string => `${queued.orgId}.${queued.channel}.${status}`

const asEvent = (fact: OutgoingFact): Publication => {
  const { messageId, version, at, type, data, queued, status } = fact
  const id = `${messageId}/${version}`
  const attributes = {
    specversion: "1.0",
    id,
    source: `/posthaste/${queued.orgId}`,
    type: `posthaste.${type}`,
    subject: messageId,
    sequence: String(version),
    time: DateTime.formatIso(at),
    datacontenttype: "application/json",
    orgid: queued.orgId,
    channel: queued.channel,
    status
  }
  // JSON text, so that numbers keep their digits.
  const text = `${JSON.stringify(attributes).slice(0, -1)},"data":${data}}`
  return [
    {
      exchange: EVENTS,
      routingKey: keyOf(fact),
      messageId: id,
      type: attributes.type,
      contentType: "application/cloudevents+json",
      appId: "posthaste"
    },
    Buffer.from(text)
  ]
}

const asDeadLetter = (
  fact: OutgoingFact,
  { body, error, attempts }: NonNullable<OutgoingFact["deadLetter"]>
): Publication => {
  const { messageId, version, at, queued } = fact
  const about = {
    original_topic: queued.eventType ?? queued.channel,
    error,
    retry_count: attempts,
    failed_at: DateTime.formatIso(at),
    correlation_id: queued.correlationId
  }
  const text = `${JSON.stringify(about).slice(0, -1)},"original_message":${body ?? "null"}}`
  return [
    {
      exchange: DEAD_LETTERS,
      routingKey: keyOf(fact),
      messageId: `${messageId}/${version}`,
      contentType: "application/json",
      appId: "posthaste",
      headers: { "x-org-id": queued.orgId, "x-message-id": messageId }
    },
    Buffer.from(text)
  ]
}
