import { Context, type DateTime, type Effect } from "effect"
import type { StoreUnavailable } from "../errors.ts"

export interface Sweep {
  readonly removed: number
  /** Where the next sweep goes on; null when everything has been looked at. */
  readonly next: string | null
}

/**
 * Forgetting what has ended well: messages DELIVERED, CANCELLED or EXPIRED before a time go with all that
 * belongs to them (stream, body, answers, view, idempotency key), and the counts go down with them. Dead
 * letters and whatever has not ended stay.
 *
 * `sweep` looks at no more than `limit` messages, in one short transaction. While one sweep is under way
 * another one does nothing and answers null.
 */
export class Retention extends Context.Service<
  Retention,
  {
    readonly sweep: (
      endedBefore: DateTime.Utc,
      from: string | null,
      limit: number
    ) => Effect.Effect<Sweep | null, StoreUnavailable>
  }
>()("posthaste/application/ports/Retention") {}
