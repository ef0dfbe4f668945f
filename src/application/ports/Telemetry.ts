import { Context, type DateTime } from "effect"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { ChannelName, DestinationId, MessageId } from "../../domain/ids.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"

/** The message that stored facts are about. */
export interface Subject {
  readonly messageId: MessageId
  readonly queued: MessageQueued
  readonly epoch: number
  /** When the attempt that these facts are about was due; null where no attempt is. */
  readonly dueAt: DateTime.Utc | null
  /** Who commanded it (see commandedBy.ts); absent: Posthaste itself. */
  readonly by?: string | null
}

/** What one append stored of a message. */
export interface Stored {
  readonly subject: Subject
  readonly facts: ReadonlyArray<MessageFact>
}

/** Why a message was refused; the last five before any message was read. */
export type Rejection =
  | ("invalid" | "blocked" | "key_reused" | "suspended" | "limit_reached")
  | ("unauthorized" | "too_large" | "unsupported_media_type" | "too_many" | "unavailable")

/**
 * Tells whoever watches this process what it did: the metrics, and the log. It decides nothing, fails never and waits for
 * nothing. Nobody watches unless a process says who (`Telemetry` has a default), so no test needs to know it.
 *
 * It is told of a fact only after this process saw the fact stored. A process that is killed between the commit and the
 * answer, or that loses the answer, stored a fact that nobody was told of: exact figures come from the facts.
 */
export interface Watcher {
  /** `via` names the way in (see via.ts). */
  readonly accepted: (queued: MessageQueued, via: string) => void
  readonly rejected: (via: string, reason: Rejection) => void
  /** Facts of an attempt, a receipt or an ending, stored by one append. */
  readonly stored: (subject: Subject, facts: ReadonlyArray<MessageFact>, at: DateTime.Utc) => void
  /** The same of many messages at once. */
  readonly storedInBulk: (all: ReadonlyArray<Stored>, at: DateTime.Utc) => void
  readonly circuitChanged: (destination: DestinationId, facts: ReadonlyArray<CircuitFact>) => void
  /** An attempt is handed to its channel; `sendingEnded` follows, whatever happens. */
  readonly sendingBegan: (channel: ChannelName) => void
  readonly sendingEnded: (channel: ChannelName) => void
  /** Another worker took over a batch that this one held. */
  readonly leaseLost: () => void
}

const nothing = () => {}

export const unwatched: Watcher = {
  accepted: nothing,
  rejected: nothing,
  stored: nothing,
  storedInBulk: nothing,
  circuitChanged: nothing,
  sendingBegan: nothing,
  sendingEnded: nothing,
  leaseLost: nothing
}

export const Telemetry = Context.Reference<Watcher>("posthaste/application/ports/Telemetry", {
  defaultValue: () => unwatched
})

/** Tells several watchers. */
export const both = (one: Watcher, other: Watcher): Watcher => ({
  accepted: (queued, via) => {
    one.accepted(queued, via)
    other.accepted(queued, via)
  },
  rejected: (via, reason) => {
    one.rejected(via, reason)
    other.rejected(via, reason)
  },
  stored: (subject, facts, at) => {
    one.stored(subject, facts, at)
    other.stored(subject, facts, at)
  },
  storedInBulk: (all, at) => {
    one.storedInBulk(all, at)
    other.storedInBulk(all, at)
  },
  circuitChanged: (destination, facts) => {
    one.circuitChanged(destination, facts)
    other.circuitChanged(destination, facts)
  },
  sendingBegan: (channel) => {
    one.sendingBegan(channel)
    other.sendingBegan(channel)
  },
  sendingEnded: (channel) => {
    one.sendingEnded(channel)
    other.sendingEnded(channel)
  },
  leaseLost: () => {
    one.leaseLost()
    other.leaseLost()
  }
})
