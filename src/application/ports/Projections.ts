import { Context, type DateTime, type Duration, type Effect } from "effect"
import type { StoreUnavailable } from "../errors.ts"
import type { Position } from "./EventStore.ts"

/**
 * The rows of one projection in one generation, and how far they have come. Of each projection one run is live:
 * it is what people read. Beside it there may be one that is being built.
 */
export interface Run {
  readonly name: string
  readonly generation: number
  /** Of the fold that made these rows. */
  readonly version: number
  readonly live: boolean
  /** Everything up to here is in the rows; null before the first fact. */
  readonly position: Position | null
  /** How many facts it has read. */
  readonly facts: number
  /** About how many there were when it began. */
  readonly total: number
  readonly factsPerSecond: number | null
  readonly startedAt: DateTime.Utc
}

/** One move of a run, and what makes it happen once: it is written only while the run still stands at `from`. */
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
 * Which rows of each projection are live, which are being built, and how far each is. The rows themselves are
 * written by the port of each projection (such as `MessageViews.project`), in the same transaction as the position.
 *
 * - A run moves by compare-and-set on its position: of many that take the same step, one writes it.
 * - Rows of a generation are seen by nobody until `swap` makes it the live one, in one step for all readers.
 * - `build` answers the build that is under way if its fold is not older than the one asked for. It is found again after
 *   a crash, at the position it had come to.
 * - What `Retention` forgets leaves every generation, and no step that was being made at that moment brings it back.
 */
export class Projections extends Context.Service<
  Projections,
  {
    readonly runs: Effect.Effect<ReadonlyArray<Run>, StoreUnavailable>
    /** Live at once where nothing is live yet. */
    readonly build: (name: string, version: number, total: number) => Effect.Effect<Run, StoreUnavailable>
    /** False, and nothing changes, unless the build stands where the live one stands. */
    readonly swap: (name: string, generation: number) => Effect.Effect<boolean, StoreUnavailable>
    /** What keeps the log from being read on, if it has done so for that long. */
    readonly stall: (longerThan: Duration.Duration) => Effect.Effect<Stall | null, StoreUnavailable>
  }
>()("posthaste/application/ports/Projections") {}
