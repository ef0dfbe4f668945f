import { Context, type DateTime, type Duration } from "effect"
import type { FromStore } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/**
 * The rows of one projection in one generation, and their progress. One run of each projection is live: its rows are
 * read. Beside it there may be one that is being built.
 */
export interface Run {
  readonly name: string
  readonly generation: number
  /** The version of the fold that made these rows. */
  readonly version: number
  readonly live: boolean
  /** All facts up to here are in the rows; null before the first fact. */
  readonly position: Position | null
  /** How many facts it has read. */
  readonly facts: number
  /** The approximate number of facts when the run began. */
  readonly total: number
  readonly factsPerSecond: number | null
  readonly startedAt: DateTime.Utc
}

/** One move of a run. It is written only while the run's position is `from`, so it happens once. */
export interface Step {
  readonly generation: number
  readonly from: Position | null
  readonly to: Position
  readonly facts: number
}

/** A transaction that is open and keeps all readers of the whole log where they are. */
export interface Stall {
  readonly pid: number
  readonly application: string
  readonly since: DateTime.Utc
}

/**
 * Which rows of each projection are live, which are being built, and the progress of each. The port of each projection
 * writes its rows (such as `MessageViews.project`), in the same transaction as the position.
 *
 * - A run moves by compare-and-set on its position: of several writers of the same step one succeeds.
 * - The rows of a build are not read until `swap` makes it the live run, in one step for all readers.
 * - `build` answers the build that is under way if its fold is not older than the requested one. After a crash the
 *   build is found again at its last position.
 * - Rows that `Retention` forgets leave every generation, and no concurrent step brings them back.
 */
export class Projections extends Context.Service<
  Projections,
  {
    readonly runs: FromStore<ReadonlyArray<Run>>
    /** The new run is live at once when no run is live yet. */
    readonly build: (name: string, version: number, total: number) => FromStore<Run>
    /** False, and nothing changes, unless the build's position is that of the live run. */
    readonly swap: (name: string, generation: number) => FromStore<boolean>
    /** The transaction that keeps the log from being read on, if it has done so for that long. */
    readonly stall: (longerThan: Duration.Duration) => FromStore<Stall | null>
  }
>()("posthaste/application/ports/Projections") {}
