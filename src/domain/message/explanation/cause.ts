/** The causes that keep a message where it is, and the search for facts that show them. */
import type { DateTime } from "effect"
import type { FactOf, MessageFact } from "../facts.ts"
import type { StoredFact } from "../view.ts"

export const reasons = [
  "PARKED",
  "ORG_SUSPENDED",
  "BEHIND_ANOTHER",
  "NO_WORKER",
  "DISABLED",
  "PAUSED",
  "CIRCUIT_HELD",
  "CIRCUIT_OPEN",
  "NOT_DUE",
  "RETRY",
  "RATE_LIMITED",
  "DUE",
  "UNDER_WAY",
  "IN_DOUBT",
  "AWAITING_RECEIPT",
  "DELIVERED",
  "REFUSED",
  "ATTEMPTS_USED_UP",
  "TOO_OLD",
  "OUTCOME_UNKNOWN",
  "CANCELLED",
  "EXPIRED"
] as const
export type Reason = (typeof reasons)[number]

export const waits = [
  "operator",
  "time",
  "message",
  "destination",
  "circuit",
  "rateLimit",
  "worker",
  "answer",
  "receipt"
] as const

export interface Cause {
  readonly reason: Reason
  readonly says: string
  readonly since: DateTime.Utc | null
  /** When it ends by itself; null when it does not, or that is unknown. */
  readonly until: DateTime.Utc | null
  readonly waitsFor: (typeof waits)[number] | null
}

export const lastOf =
  (history: ReadonlyArray<StoredFact>) =>
  <T extends MessageFact["type"]>(type: T) =>
    history.findLast(({ fact }) => fact.type === type) as (StoredFact & { readonly fact: FactOf<T> }) | undefined

export const errorIn = (fact: { readonly error: { readonly code: string; readonly message: string } } | undefined) =>
  fact === undefined ? "" : ` (${fact.error.code}: ${fact.error.message})`
