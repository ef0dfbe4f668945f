/**
 * The message that tells one destination of an event. Its id is made of both, so there is one, whoever makes it and
 * after any crash. Of two messages for one destination, the one of the earlier event has the lower id.
 */
import { DateTime, Effect, Result } from "effect"
import type { EventView } from "../../domain/event/event.ts"
import { type DestinationId, type EventId, MessageId, type OrgId } from "../../domain/ids.ts"
import { decide, initial } from "../../domain/message/decider.ts"
import { detailsOf, type MessageQueued } from "../../domain/message/facts.ts"
import { lineOf } from "../accept/acceptMessage.ts"
import { retryPolicyOf } from "../accept/addressing.ts"
import { CommandedBy } from "../commandedBy.ts"
import { entryOf } from "../entry.ts"
import { Channels } from "../ports/Channels.ts"
import type { Append } from "../ports/EventStore.ts"
import type { Subscriber } from "../ports/Events.ts"
import { Fingerprint } from "../ports/Fingerprint.ts"
import { Orgs } from "../ports/Orgs.ts"

type Event = Pick<
  EventView,
  "id" | "eventType" | "dossierId" | "orderingKey" | "correlationId" | "metadata" | "deliverAt" | "expiresAt"
>

/** Makes the first entry of a message of one org's event. `origin`: the trace of the event's request, or a replay. */
export const messagesOfEvents = Effect.fnUntraced(function* (orgId: OrgId) {
  const channels = yield* Channels
  const fingerprint = yield* Fingerprint
  const actor = yield* CommandedBy
  const { retry: retryOfOrg } = yield* (yield* Orgs).settingsOf(orgId)
  return (
    event: Event,
    { destination, channel, retry }: Subscriber,
    now: DateTime.Utc,
    origin: Pick<MessageQueued, "replayId" | "traceparent">
  ): Append => {
    const queued: MessageQueued = {
      type: "MessageQueued",
      orgId,
      channel,
      to: destination,
      destination,
      eventId: event.id,
      ...origin,
      ...detailsOf(event),
      ...lineOf(fingerprint, orgId, destination, event.orderingKey),
      retry: retryPolicyOf(channels.get(channel)!, retry, retryOfOrg),
      acceptedAt: now,
      // A time in the past means now: a message can't overtake its lane by a date in the past.
      dueAt: event.deliverAt === null ? now : DateTime.max(event.deliverAt, now),
      expiresAt: event.expiresAt
    }
    const facts = Result.getOrThrow(decide(initial, { type: "QueueMessage", request: queued }))
    const id = messageIdOf(event.id, destination, fingerprint.of)
    const opening = { body: { ofEvent: event.id }, idempotency: null }
    return entryOf(id, initial, 0, facts, now, { actor, opening }).entry
  }
})

/** Time and order of the event's id, then 62 bits that stand for both. */
export const messageIdOf = (
  event: EventId,
  destination: DestinationId,
  fingerprint: (text: string) => string
): MessageId => {
  const digits = fingerprint(`${event}/${destination}`)
  const variant = (0x8 | (Number.parseInt(digits[0]!, 16) & 0x3)).toString(16)
  return MessageId.make(`${event.slice(0, 18)}-${variant}${digits.slice(1, 4)}-${digits.slice(4, 16)}`)
}
