import { Context, type DateTime } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/**
 * An alert target was alerted about a dead letter of this destination, which died at `at`; or, where the destination is the target
 * itself, about a refused command.
 */
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
    readonly position: FromStore<Position | null>
    /** The last notice of each pair of a target and one of these destinations. */
    readonly notices: (destinations: ReadonlyArray<DestinationId>) => FromStore<ReadonlyArray<Notice>>
    /** Forgets notices from before `forget`. Writes nothing and answers false when the position is no longer `from`. */
    readonly advance: (
      from: Position | null,
      to: Position,
      notices: ReadonlyArray<Notice>,
      forget: DateTime.Utc
    ) => FromStore<boolean>
  }
>()("posthaste/application/ports/AlertProgress") {}
