import { Context, type DateTime, type Duration } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { Position } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

/** Followers of the log that keep their own position; a projection keeps its position with its rows. */
export type Follower = "alerts" | "facts"

/**
 * An alert that a target got about a dead letter of this destination, which died at `at`; where the destination is the
 * target itself, about a refused command.
 */
export interface Notice {
  readonly target: DestinationId
  readonly destination: DestinationId
  readonly at: DateTime.Utc
}

/**
 * The position of each follower of the log. `advance` is a compare-and-set. One process at a time holds a follower,
 * under a renewed lease; after a standstill a step may be done twice.
 */
export class Followers extends Context.Service<
  Followers,
  {
    readonly position: (follower: Follower) => FromStore<Position | null>
    /** Sets the position of a follower that has none. */
    readonly begin: (follower: Follower, position: Position | null) => FromStore<void>
    /** Takes or renews the lease; false while another process holds it. */
    readonly hold: (follower: Follower, holder: string, lease: Duration.Duration) => FromStore<boolean>
    readonly advance: (follower: Follower, from: Position | null, to: Position) => FromStore<boolean>
    /** The last notice of each pair of a target and one of these destinations. */
    readonly notices: (destinations: ReadonlyArray<DestinationId>) => FromStore<ReadonlyArray<Notice>>
    readonly note: (notices: ReadonlyArray<Notice>, forget: DateTime.Utc) => FromStore<void>
  }
>()("posthaste/application/ports/Followers") {}
