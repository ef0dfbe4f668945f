/**
 * What an attempt says about its destination's health, which is not the same as what it says about the
 * message: a destination that refuses a message for good is up and judging.
 *
 * A destination that puts us off for a while, or a message, says nothing bad about itself; one that can't be used
 * until somebody has put it right says everything at once.
 *
 * Our own faults say nothing: a store that did not answer, an address we may not call, an endpoint that was
 * removed, a body that was erased, a bug. A redirect says nothing either: it tells where something is.
 */
import type { AttemptOutcome } from "../delivery/outcome.ts"
import type { CircuitError } from "./facts.ts"

export type Evidence = "success" | "failure" | "none"

/** No answer, and it was the far side that gave none. */
const theirs: ReadonlySet<string> = new Set([
  "timeout",
  "connection_failed",
  "dns_failed",
  "tls_failed",
  "response_broken"
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
