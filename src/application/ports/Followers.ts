import { Context, type DateTime, type Duration } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/** Followers of the log that keep their own position; a projection keeps its position with its rows. */
export type Follower = "alerts" | "facts"

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
 * How far each follower has read the log.
 *
 * - `advance` is a compare-and-set: of several processes at the same position one moves it.
 * - One process at a time holds a follower, for as long as its lease lasts and is renewed. A process that stood still for longer may do a
 *   step a second time.
 */
export class Followers extends Context.Service<
  Followers,
  {
    /** Null before the first step. */
    readonly position: (follower: Follower) => FromStore<Position | null>
    /** Where to begin. Only the first time: a follower that has begun goes on where it stands. */
    readonly begin: (follower: Follower, position: Position | null) => FromStore<void>
    /** Takes or renews the lease; false while another process holds it. */
    readonly hold: (follower: Follower, holder: string, lease: Duration.Duration) => FromStore<boolean>
    /** Writes nothing and answers false when the position is no longer `from`. */
    readonly advance: (follower: Follower, from: Position | null, to: Position) => FromStore<boolean>
    /** The last notice of each pair of a target and one of these destinations. */
    readonly notices: (destinations: ReadonlyArray<DestinationId>) => FromStore<ReadonlyArray<Notice>>
    /** Keeps notices, and forgets those from before `forget`. */
    readonly note: (notices: ReadonlyArray<Notice>, forget: DateTime.Utc) => FromStore<void>
  }
>()("posthaste/application/ports/Followers") {}
