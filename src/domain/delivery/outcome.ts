/** How one try ended, in the domain's words. Channels report it, the decider turns it into facts. */
import type { DeliveryError } from "../message/facts.ts"

interface Timed {
  readonly durationMs: number
}

interface NotTaken extends Timed {
  readonly error: DeliveryError
  /** Of an answer; null without one. */
  readonly status: number | null
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
  | ({ readonly type: "Refused" } & NotTaken)
  /** No, for now: the message may be sent again later. */
  | ({ readonly type: "Unreachable"; readonly retryAfterMs: number | null } & NotTaken)
  /**
   * The destination did not process the request, and its answer says nothing about the message: the message waits, and
   * the attempt does not count. `scope` is what was refused: this message, its destination for a while (a rate limit),
   * or its destination until a person repairs it (an expired token).
   */
  | ({
      readonly type: "Deferred"
      readonly scope: "message" | "lane" | "circuit"
      readonly afterMs: number
    } & NotTaken)
  /**
   * The destination may have taken the message, and it does not drop duplicates: Posthaste must ask before it sends
   * again, first after this time. Null: the destination can't be asked.
   */
  | ({ readonly type: "Unknown"; readonly reconcileAfterMs: number | null } & NotTaken)
