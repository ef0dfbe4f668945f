/**
 * A projection: a named, versioned fold of the log into rows.
 *
 * To add one:
 * 1. A port that reads the rows of the live generation, and writes rows by a `Step`: in one transaction it moves the
 * position of `(name, step.generation)` from `step.from` to `step.to` and writes, or answers false when the position is
 * elsewhere.
 * 2. A value of this type, in `all.ts`. The runner (keepProjections.ts) does the rest.
 *
 * A rebuild gives the same rows only if `project` uses nothing but facts (no clock, no changing table) and rows of
 * forgotten messages go with them (Retention).
 */
import type { Effect } from "effect"
import type { LoggedFact } from "../../ports/EventStore.ts"
import type { StoreUnavailable } from "../../ports/errors.ts"
import type { Step } from "../../ports/Projections.ts"
import type { LogReader } from "../LogReader.ts"

export type ProjectionName = "messages" | "health"

export type Write<R> = (step: Step) => Effect.Effect<boolean, StoreUnavailable, R>

export interface Projection<R> {
  readonly name: ProjectionName
  /** The version of the fold. Raise it after a change, and every installation rebuilds the projection while it runs. */
  readonly version: number
  /**
   * Makes the rows of these facts, in log order and of all streams. A fact may come again after a crash. It may be
   * called for parts of a batch: if it dies, the streams that it dies of are parked. Answers how to write the rows.
   */
  readonly project: (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<Write<R>, StoreUnavailable, R | LogReader>
  readonly clear: (limit: number) => Effect.Effect<number, StoreUnavailable, R>
}
