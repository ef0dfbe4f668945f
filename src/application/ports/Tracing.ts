import { Context, type DateTime } from "effect"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { MessageId } from "../../domain/ids.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"

/** A span that is under way. */
export interface OpenSpan {
  /** What whoever is called next gets, in the form of W3C's `traceparent`. */
  readonly traceparent: string
}

export interface TracedAttempt {
  readonly messageId: MessageId
  readonly queued: MessageQueued
  readonly epoch: number
  readonly attempt: number
  /** When it was due. */
  readonly dueAt: DateTime.Utc
}

/**
 * Spans of what happens to messages. A message keeps the `traceparent` it was accepted under, so that its attempts join its
 * trace days later and in other processes.
 *
 * Without an exporter nothing is built: a message keeps the caller's `traceparent`, and its receiver gets it. Attributes
 * name things by their ids and Posthaste's own codes; they hold no body, no secret and no address.
 */
export interface Tracer {
  /** Null where the message belongs to no trace that anybody keeps: it then keeps what the caller gave. */
  readonly acceptance: (given: string | null, about: MessageQueued, id: MessageId, via: string) => Acceptance | null
  /** Null where the message belongs to no trace that anybody keeps. */
  readonly attempt: (about: TracedAttempt) => AttemptSpan | null
  /** Facts about an attempt that another worker left open: its own span was lost with that worker. */
  readonly abandoned: (about: Omit<TracedAttempt, "attempt">, facts: ReadonlyArray<MessageFact>) => void
}

export interface Acceptance extends OpenSpan {
  readonly end: (outcome: string) => void
}

export interface AttemptSpan extends OpenSpan {
  readonly end: (outcome: AttemptOutcome) => void
}

export const Tracing = Context.Reference<Tracer>("posthaste/application/ports/Tracing", {
  defaultValue: () => ({ acceptance: () => null, attempt: () => null, abandoned: () => {} })
})
