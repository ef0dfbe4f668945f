/** How one try ended, in the domain's words. Channels report it, the decider turns it into facts. */
import type { DeliveryError } from "../message/facts.ts"

interface Timed {
  readonly durationMs: number
}

export type AttemptOutcome =
  /** The destination's system has taken it. `delivered`: its answer also proves delivery at the recipient. */
  | ({
      readonly type: "Accepted"
      readonly status: number | null
      readonly providerMessageId: string | null
      readonly delivered: boolean
    } & Timed)
  /** The far side said no and will say no again. */
  | ({ readonly type: "Refused"; readonly error: DeliveryError; readonly status: number | null } & Timed)
  /** No, for now: the message may be sent again later. */
  | ({
      readonly type: "Unreachable"
      readonly error: DeliveryError
      readonly status: number | null
      readonly retryAfterMs: number | null
    } & Timed)
  /**
   * The far side did not try it, and that says nothing about the message: it waits, and the try does not count.
   * `scope` is what was turned away: this message, its destination for so long (a rate limit), or its destination
   * until somebody has put it right (an expired token).
   */
  | ({
      readonly type: "Deferred"
      readonly error: DeliveryError
      readonly status: number | null
      readonly scope: "message" | "lane" | "circuit"
      readonly afterMs: number
    } & Timed)
  /**
   * It may have been taken, and this channel could not drop a duplicate: find out before sending again, first
   * after this time. Null: there is nobody to ask.
   */
  | ({
      readonly type: "Unknown"
      readonly error: DeliveryError
      /** Of an answer that left it open, such as a gateway's. */
      readonly status: number | null
      readonly reconcileAfterMs: number | null
    } & Timed)
