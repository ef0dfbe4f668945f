/** The outcome of an attempt. Channels report it, the decider turns it into facts. */
import type { DeliveryError } from "./DeliveryError.ts"

interface Timed {
  readonly durationMs: number
}

interface NotTaken extends Timed {
  readonly error: DeliveryError
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
  | ({ readonly type: "Refused" } & NotTaken)
  | ({ readonly type: "Unreachable"; readonly retryAfterMs: number | null } & NotTaken)
  /**
   * The request was not processed, for a reason that is not the message's: it waits, and the attempt does not count.
   * `scope`: this message, its lane for a while (a rate limit), or its circuit until a person repairs the destination
   * (an expired token).
   */
  | ({ readonly type: "Deferred"; readonly scope: "message" | "lane" | "circuit"; readonly afterMs: number } & NotTaken)
  /**
   * The destination may have taken the message, and it drops no duplicates: Posthaste must ask before it sends again,
   * first after this time. Null: the destination can't be asked.
   */
  | ({ readonly type: "Unknown"; readonly reconcileAfterMs: number | null } & NotTaken)
