/**
 * The evidence of an attempt about its destination's health. A destination that refuses a message for good is healthy.
 * Deferrals of a message or lane, redirects and faults of Posthaste (store, forbidden address, erased body) say
 * nothing; a deferral until a person repairs the destination opens the circuit.
 */
import type { AttemptOutcome } from "../delivery/outcome.ts"
import type { CircuitError } from "./facts.ts"

export type Evidence = "success" | "failure" | "none"

const theirs: ReadonlySet<string> = new Set([
  "timeout",
  "connection_failed",
  "dns_failed",
  "tls_failed",
  "response_broken",
  "nacked",
  "unconfirmed",
  "channel_closed"
])

export const evidenceOf = (outcome: AttemptOutcome): Evidence => {
  if (outcome.type === "Accepted") return "success"
  if (outcome.type === "Deferred") return outcome.scope === "circuit" ? "failure" : "none"
  const { status } = outcome
  if (status === null) return theirs.has(outcome.error.code) ? "failure" : "none"
  if (status >= 300 && status < 400) return "none"
  const judging = status >= 400 && status < 500 && status !== 408 && status !== 429
  return judging ? "success" : "failure"
}

export const openingErrorOf = (outcome: AttemptOutcome): CircuitError | null =>
  outcome.type === "Deferred" && outcome.scope === "circuit"
    ? { code: outcome.error.code, message: outcome.error.message }
    : null
