import { Context, type DateTime, type Duration } from "effect"
import type { Position } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

/**
 * The rows of one projection in one generation, and their progress. One run of each projection is live, the one that is
 * read; another may be under construction.
 */
export interface Run {
  readonly name: string
  readonly generation: number
  readonly version: number
  readonly live: boolean
  /** All facts up to here are in the rows; null before the first fact. */
  readonly position: Position | null
  readonly facts: number
  /** The approximate number of facts when the run began. */
  readonly total: number
  readonly factsPerSecond: number | null
  readonly startedAt: DateTime.Utc
}

/** A move of a run, written only while the run's position is `from`. */
export interface Step {
  readonly generation: number
  readonly from: Position | null
  readonly to: Position
  readonly facts: number
}

export interface Stall {
  readonly pid: number
  readonly application: string
  readonly since: DateTime.Utc
}

/**
 * The runs of each projection. Its own port writes the rows (`MessageViews.project`), in the transaction of the
 * position, by compare-and-set.
 *
 * - The rows of a build are not read until `swap` makes it live, in one step for all readers.
 * - `build` answers the build under way if its fold is not older than the requested one, also after a crash.
 * - Rows that `Retention` forgets leave every generation, and no concurrent step brings them back.
 */
export class Projections extends Context.Service<
  Projections,
  {
    readonly runs: FromStore<ReadonlyArray<Run>>
    /** Live at once when no run is live. */
    readonly build: (name: string, version: number, total: number) => FromStore<Run>
    /** False, and nothing changes, unless the build's position is that of the live run. */
    readonly swap: (name: string, generation: number) => FromStore<boolean>
    readonly stall: (longerThan: Duration.Duration) => FromStore<Stall | null>
  }
>()("posthaste/application/ports/Projections") {}
