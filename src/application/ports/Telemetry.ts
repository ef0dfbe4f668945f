import { Context, type DateTime } from "effect"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { ChannelName, DestinationId, MessageId } from "../../domain/ids.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"

export interface Subject {
  readonly messageId: MessageId
  readonly queued: MessageQueued
  readonly epoch: number
  readonly dueAt: DateTime.Utc | null
  readonly by?: string | null
}

export interface Stored {
  readonly subject: Subject
  readonly facts: ReadonlyArray<MessageFact>
}

/** The last five come before any message is read. */
export type Rejection =
  | ("invalid" | "blocked" | "key_reused" | "suspended" | "limit_reached")
  | ("unauthorized" | "too_large" | "unsupported_media_type" | "too_many" | "unavailable")

/**
 * Tells the metrics and the log of this process's actions. It decides nothing, never fails and never waits; the default
 * tells nothing. It hears of a fact only after this process saw it stored: a process that dies between commit and
 * answer tells nothing, so exact figures come from the facts.
 */
export interface Watcher {
  /** `via` names the way in (via.ts). */
  readonly accepted: (queued: MessageQueued, via: string) => void
  readonly rejected: (via: string, reason: Rejection) => void
  readonly stored: (subject: Subject, facts: ReadonlyArray<MessageFact>, at: DateTime.Utc) => void
  readonly storedInBulk: (all: ReadonlyArray<Stored>, at: DateTime.Utc) => void
  readonly circuitChanged: (destination: DestinationId, facts: ReadonlyArray<CircuitFact>) => void
  /** An attempt is handed to its channel; `sendingEnded` always follows. */
  readonly sendingBegan: (channel: ChannelName) => void
  readonly sendingEnded: (channel: ChannelName) => void
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

export const both = (one: Watcher, other: Watcher): Watcher => {
  const tell =
    (name: string) =>
    (...told: ReadonlyArray<never>) => {
      for (const watcher of [one, other] as ReadonlyArray<object>) {
        ;(watcher as Record<string, (...told: ReadonlyArray<never>) => void>)[name]!(...told)
      }
    }
  return Object.fromEntries(Object.keys(unwatched).map((name) => [name, tell(name)])) as unknown as Watcher
}
