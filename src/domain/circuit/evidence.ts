/**
 * What an attempt shows of its destination's health. This differs from the result for the message: a destination that
 * refuses a message for good is healthy.
 *
 * - A deferral of the message or of its lane says nothing bad about the destination. A deferral until a person repairs
 *   the destination is enough to open the circuit.
 * - Faults on Posthaste's side say nothing: a store that did not answer, an address that may not be called, a removed
 *   endpoint, an erased body, a bug. A redirect says nothing either: it names another place.
 */
import type { AttemptOutcome } from "../delivery/outcome.ts"
import type { CircuitError } from "./facts.ts"

export type Evidence = "success" | "failure" | "none"

/** There is no answer because of the destination. */
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

/** Why one failure is enough to open the circuit; null where failures are counted. */
export const openingErrorOf = (outcome: AttemptOutcome): CircuitError | null =>
  outcome.type === "Deferred" && outcome.scope === "circuit"
    ? { code: outcome.error.code, message: outcome.error.message }
    : null
