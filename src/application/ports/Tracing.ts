import { Context, type DateTime } from "effect"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { MessageId } from "../../domain/ids.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"

export interface OpenSpan {
  /** For the next callee, in the form of W3C's `traceparent`. */
  readonly traceparent: string
}

export interface TracedAttempt {
  readonly messageId: MessageId
  readonly queued: MessageQueued
  readonly epoch: number
  readonly attempt: number
  readonly dueAt: DateTime.Utc
}

/**
 * Spans of messages. A message keeps the `traceparent` it was accepted under, so that attempts join its trace days
 * later and in other processes; its receiver gets it. Without an exporter nothing is built. Attributes hold ids and
 * codes, no body, secret or address.
 */
export interface Tracer {
  /** Null where no exporter keeps the trace: the message keeps the given one. */
  readonly acceptance: (given: string | null, about: MessageQueued, id: MessageId, via: string) => Acceptance | null
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
