import { Context, type DateTime, type Effect } from "effect"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"

/** What a worker saw of one destination since it last told. */
export interface Report {
  readonly destination: DestinationId
  /** The generation under which it was allowed to look. */
  readonly generation: number
  /** Something was answered well; failures before that no longer count. */
  readonly succeeded: boolean
  /** Failures in a row since then. */
  readonly failures: number
}

export interface CircuitHistory {
  readonly facts: ReadonlyArray<{ readonly at: DateTime.Utc; readonly fact: CircuitFact }>
  /** The store's clock: all workers measure a silence with the same one. */
  readonly now: DateTime.Utc
}

/**
 * The circuit of each destination: its facts, on the journal `circuit-<destination>`, and its standing, which
 * is what `Queue.claim` and the gate of `EventStore.append` obey.
 *
 * - `append` is a compare-and-set on the generation, the number of facts: of many who want to change a
 *   circuit at the same generation one succeeds. Facts and standing change in one transaction, so they never
 *   disagree, whatever crashes when.
 * - `report` adds to the count of failures of a closed circuit, and lets a circuit that was just closed admit
 *   more. What was seen under an older generation changes nothing and is not answered. It changes no status:
 *   that takes facts, and whoever reports decides them by what is answered.
 * - `giveBack` returns the permit of a probe that could not tell anything. Another may start a little later.
 * - A circuit nobody wrote about is at rest: closed, without facts.
 *
 * The one fact that is not written here is `CircuitProbed`: `Queue.claim` writes it when it hands out a probe.
 */
export class Circuits extends Context.Service<
  Circuits,
  {
    readonly load: (destination: DestinationId) => Effect.Effect<CircuitHistory, StoreUnavailable>
    /** In the order asked. */
    readonly states: (
      destinations: ReadonlyArray<DestinationId>
    ) => Effect.Effect<ReadonlyArray<CircuitState>, StoreUnavailable>
    /** At most one report per destination. Each that was still in time is answered with where it left the circuit. */
    readonly report: (
      reports: ReadonlyArray<Report>
    ) => Effect.Effect<ReadonlyMap<DestinationId, CircuitState>, StoreUnavailable>
    readonly giveBack: (destination: DestinationId, generation: number) => Effect.Effect<void, StoreUnavailable>
    /** Whose destination it is, or was; null for one the store never knew, or knows no more. */
    readonly orgOf: (destination: DestinationId) => Effect.Effect<OrgId | null, StoreUnavailable>
    /** `after` is where the circuit stands once the facts are written. */
    readonly append: (
      destination: DestinationId,
      generation: number,
      facts: ReadonlyArray<CircuitFact>,
      after: CircuitState,
      actor: string | null
    ) => Effect.Effect<"Appended" | "VersionConflict", StoreUnavailable>
  }
>()("posthaste/application/ports/Circuits") {}
