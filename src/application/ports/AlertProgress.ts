import { Context, type DateTime, type Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/** An alert target was alerted about a dead letter of this destination, which died at `at`. */
export interface Notice {
  readonly target: DestinationId
  readonly destination: DestinationId
  readonly at: DateTime.Utc
}

/**
 * How far alerting has read the log, and its recent notices. Both change in one step, and only from the position where
 * the reader began: of several readers one changes them.
 */
export class AlertProgress extends Context.Service<
  AlertProgress,
  {
    /** Null before the first step. */
    readonly position: Effect.Effect<Position | null, StoreUnavailable>
    /** The last notice of each pair of a target and one of these destinations. */
    readonly notices: (
      destinations: ReadonlyArray<DestinationId>
    ) => Effect.Effect<ReadonlyArray<Notice>, StoreUnavailable>
    /** Forgets notices from before `forget`. Writes nothing and answers false when the position is no longer `from`. */
    readonly advance: (
      from: Position | null,
      to: Position,
      notices: ReadonlyArray<Notice>,
      forget: DateTime.Utc
    ) => Effect.Effect<boolean, StoreUnavailable>
  }
>()("posthaste/application/ports/AlertProgress") {}
