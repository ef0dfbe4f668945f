import { Context, type Duration } from "effect"
import type { FromStore } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/**
 * How far facts have gone out to the broker.
 *
 * One process at a time holds the outlet, for as long as its lease lasts and is renewed by `hold` and `advance`. A process
 * that stood still for longer may let facts out a second time.
 */
export class FactOutletProgress extends Context.Service<
  FactOutletProgress,
  {
    /** Where to begin. Only the first time: what has begun goes on where it stands. */
    readonly begin: (position: Position | null) => FromStore<void>
    /** Where to go on; null while another process holds the outlet. */
    readonly hold: (
      holder: string,
      lease: Duration.Duration
    ) => FromStore<{ readonly position: Position | null } | null>
    /** Writes nothing and answers false when the position is no longer `from`, or the outlet is another's. */
    readonly advance: (
      holder: string,
      lease: Duration.Duration,
      from: Position | null,
      to: Position
    ) => FromStore<boolean>
  }
>()("posthaste/application/ports/FactOutletProgress") {}
