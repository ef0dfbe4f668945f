/**
 * What Posthaste promises about waits and attempts, written down a second time and in another way. The judge asks
 * nothing of the code it judges: a formula that is wrong there must not be wrong here too.
 */
import type { RetryPolicy } from "../../../src/domain/delivery/retry.ts"
import type { MessageStatus } from "../../../src/domain/message/machine.ts"

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Nobody is made to wait longer by what a receiver asks for. */
export const ASKED_MOST_MS = HOUR

/** Between the end of the longest request and the moment another probe may go. */
export const PERMIT_SPARE_MS = 2 * SECOND

/** What webhooks wait for where nobody chose otherwise: after the first failure, the second, and so on. */
export const webhookWaitsMs = [SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE]

/** Six, unless the policy says otherwise; a schedule has one attempt more than waits. */
export const attemptsOf = (policy: RetryPolicy): number => {
  if (policy.attemptsMax !== undefined) return policy.attemptsMax
  return policy.strategy === "schedule" ? 1 + policy.waitsMs.length : 6
}

/** The waits after failures 1, 2, … `failures`, before chance is let in. */
const waitsOf = (policy: RetryPolicy, failures: number): ReadonlyArray<number> => {
  const waits: Array<number> = []
  if (policy.strategy === "schedule") {
    // The last wait is for all that follow.
    for (let n = 0; n < failures; n++) waits.push(policy.waitsMs[n] ?? policy.waitsMs.at(-1)!)
    return waits
  }
  let wait = policy.baseMs
  for (let n = 0; n < failures; n++) {
    waits.push(Math.min(wait, policy.capMs ?? 24 * HOUR))
    if (policy.strategy === "linear") wait += policy.baseMs
    if (policy.strategy === "exponential") wait *= policy.factor ?? 2
  }
  return waits
}

/** The shortest and the longest wait after failure number `failure`. */
export const waitAfter = (
  policy: RetryPolicy,
  failure: number
): { readonly shortest: number; readonly longest: number } => {
  const wait = waitsOf(policy, failure).at(-1)!
  const spread = policy.strategy === "schedule" ? [1, 1] : [0.5, 1.5]
  const [low, high] = policy.jitter ?? spread
  // Waits are whole milliseconds.
  return { shortest: Math.floor(wait * low!), longest: Math.ceil(wait * high!) }
}

/** The least that a message waits which was put off so often before, in the default life: twice as long each time, up to an hour. */
export const leastWaitAfter = (deferrals: number): number => {
  let wait = SECOND
  for (let n = 5; n < deferrals && wait < HOUR; n++) wait *= 2
  return Math.min(wait, HOUR)
}

/** A message that came so far needs nobody any more. */
export const endings: ReadonlySet<MessageStatus> = new Set([
  "DELIVERED",
  "FAILED",
  "DEAD_LETTER",
  "CANCELLED",
  "EXPIRED"
])

export const isDead = (status: MessageStatus) => status === "FAILED" || status === "DEAD_LETTER"
