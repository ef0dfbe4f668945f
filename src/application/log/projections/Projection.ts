/**
 * A projection: a named, versioned fold of the log into rows that people ask for.
 *
 * To add one:
 * 1. A port of its own that reads the rows and has a method to write them, taking a `Step`: it moves the position of
 *    `(name, step.generation)` from `step.from` to `step.to` and writes the rows of that generation in ONE transaction,
 *    and answers false, having written nothing, when the position is elsewhere by now.
 * 2. Rows carry their generation; readers see the live one only.
 * 3. A value of this type, in `all.ts`. The runner (keepProjections.ts) does the rest: it follows the log, retries,
 *    rebuilds beside when `version` is newer than the rows or on request, swaps, and deletes old rows.
 *
 * Two rules make a rebuild give the same rows: `project` may use nothing but facts (no clock, no other table that
 * changes), and rows of forgotten messages must go with them (see Retention).
 */
import type { Effect } from "effect"
import type { StoreUnavailable } from "../../errors.ts"
import type { LoggedFact } from "../../ports/EventStore.ts"
import type { Step } from "../../ports/Projections.ts"
import type { LogReader } from "../LogReader.ts"

export type ProjectionName = "messages" | "health"

/** False when the position is elsewhere by now. */
export type Write<R> = (step: Step) => Effect.Effect<boolean, StoreUnavailable, R>

export interface Projection<R> {
  readonly name: ProjectionName
  /** The version of the fold. Raise it after a change, and every installation rebuilds the projection while it runs. */
  readonly version: number
  /**
   * Makes the rows of these facts, which come in the order of the log, from all streams; ignore those that do not concern it.
   * A fact may come again in another batch after a crash. `LogReader.streams` has the whole stream of each message
   * among them, and `LogReader.orgs` the org of each stream. It may be called for parts of a batch: if it dies, the streams that it
   * dies of are parked. Answers how to write the rows.
   */
  readonly project: (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<Write<R>, StoreUnavailable, R | LogReader>
  /** Deletes up to `limit` rows of generations older than all in `Projections.runs`; answers their number. */
  readonly clear: (limit: number) => Effect.Effect<number, StoreUnavailable, R>
}
