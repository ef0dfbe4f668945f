import { Context, type DateTime } from "effect"
import type { Circuit } from "../../domain/circuit/decider.ts"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"

export interface Report {
  readonly destination: DestinationId
  readonly generation: number
  /** An attempt succeeded; failures before it no longer count. */
  readonly succeeded: boolean
  readonly failures: number
}

export interface PresentCircuit {
  readonly circuit: Circuit
  readonly generation: number
  /** By the store's clock, which all workers share. */
  readonly now: DateTime.Utc
}

/**
 * The circuit of each destination: its facts, on the journal `circuit-<destination>`, and its state, which
 * `Queue.claim` and the gate of `EventStore.append` obey. A circuit without facts is closed.
 *
 * - `append` is a compare-and-set on the generation. Facts and state change in one transaction.
 * - `report` counts failures of a closed circuit, and widens the limit of one that was just closed. It ignores older
 *   generations and changes no status: that takes facts, which the reporting worker decides from the answer.
 * - `present` folds the last facts alone: a destination that is down for years has one every few minutes.
 * - `Queue.claim` writes `CircuitProbed`.
 */
export class Circuits extends Context.Service<
  Circuits,
  {
    readonly present: (destination: DestinationId) => FromStore<PresentCircuit>
    readonly states: (destinations: ReadonlyArray<DestinationId>) => FromStore<ReadonlyArray<CircuitState>>
    /** At most one report per destination. Each of the current generation is answered with the state after it. */
    readonly report: (reports: ReadonlyArray<Report>) => FromStore<ReadonlyMap<DestinationId, CircuitState>>
    readonly orgOf: (destination: DestinationId) => FromStore<OrgId | null>
    readonly append: (
      destination: DestinationId,
      generation: number,
      facts: ReadonlyArray<CircuitFact>,
      after: CircuitState,
      actor: string | null
    ) => FromStore<"Appended" | "VersionConflict">
  }
>()("posthaste/application/ports/Circuits") {}
