/** The cause of a message that was taken by its destination or has ended. */
import type { MessageStatus } from "../machine.ts"
import type { StoredFact } from "../view.ts"
import { type Cause, errorIn, lastOf } from "./cause.ts"

const ended = { until: null, waitsFor: null }

export const causeOf = (
  status: Exclude<MessageStatus, "QUEUED" | "SENDING">,
  history: ReadonlyArray<StoredFact>
): Cause => {
  const last = lastOf(history)
  switch (status) {
    case "SENT":
      return {
        reason: "AWAITING_RECEIPT",
        says: "the destination took the message; a proof of delivery has not arrived yet",
        since: last("AttemptSucceeded")?.at ?? null,
        until: null,
        waitsFor: "receipt"
      }
    case "DELIVERED": {
      const delivered = last("MessageDelivered")
      const says =
        delivered?.fact.proof === "receipt"
          ? "a receipt from the provider proves the delivery"
          : "the destination answered that it received the message"
      return { reason: "DELIVERED", says, since: delivered?.at ?? null, ...ended }
    }
    case "FAILED": {
      const failed = last("MessageFailed")
      const by = failed?.fact.by === "receipt" ? " by a receipt of the provider" : ""
      return {
        reason: "REFUSED",
        says: `the message was refused for good${by}${errorIn(failed?.fact)}`,
        since: failed?.at ?? null,
        ...ended
      }
    }
    case "DEAD_LETTER": {
      const dead = last("MessageDeadLettered")
      const [reason, says] = deadBecause[dead?.fact.reason ?? "attempts used up"]
      return { reason, says: `${says}${errorIn(dead?.fact)}`, since: dead?.at ?? null, ...ended }
    }
    case "CANCELLED": {
      const cancelled = last("MessageCancelled")
      const why = cancelled?.fact.reason
      const says = `the message was cancelled before it was sent${why == null ? "" : `: ${why}`}`
      return { reason: "CANCELLED", says, since: cancelled?.at ?? null, ...ended }
    }
    case "EXPIRED":
      return {
        reason: "EXPIRED",
        says: "the message expired before it could be sent",
        since: last("MessageExpired")?.at ?? null,
        ...ended
      }
  }
}

const deadBecause = {
  "attempts used up": ["ATTEMPTS_USED_UP", "no attempt is left"],
  "too old to retry": ["TOO_OLD", "the next attempt would have come too late"],
  "too old": ["TOO_OLD", "it grew too old while it waited"],
  "outcome unknown": ["OUTCOME_UNKNOWN", "nobody can say whether the destination took the message"]
} as const
