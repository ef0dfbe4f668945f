/** Facts of one event, on the journal `event-<id>`. Its body is no part of a fact: it can be erased. */
import { Schema } from "effect"
import { OrgId } from "../ids.ts"
import { Metadata } from "../message/facts.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

const Text = Schema.NullOr(Schema.String)
const Time = Schema.DateTimeUtcFromString

/** `matched` is the number of endpoints that wanted it; each got a message in the same transaction. */
export const EventPublished = fact(
  "EventPublished",
  {
    orgId: OrgId,
    eventType: Schema.NonEmptyString,
    matched: Schema.Int,
    dossierId: Text,
    orderingKey: Text,
    correlationId: Text,
    metadata: Schema.NullOr(Metadata),
    deliverAt: Schema.NullOr(Time),
    expiresAt: Schema.NullOr(Time)
  },
  { dossierId: null, orderingKey: null, correlationId: null, metadata: null }
)
export type EventPublished = typeof EventPublished.Type

/** The body is erased, and that of every message it became. */
export const EventErased = fact("EventErased", { orgId: OrgId, reason: Text }, { reason: null })

export const recorded = { "EventPublished@1": EventPublished, "EventErased@1": EventErased } as const
export type EventFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<EventFact>(recorded)
