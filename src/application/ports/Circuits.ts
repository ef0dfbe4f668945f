import { Context, type DateTime } from "effect"
import type { Circuit } from "../../domain/circuit/decider.ts"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/** One worker's observations of one destination since its last report. */
export interface Report {
  readonly destination: DestinationId
  /** The generation of the circuit when the messages were claimed. */
  readonly generation: number
  /** An attempt succeeded; failures before it no longer count. */
  readonly succeeded: boolean
  /** Failures in a row since then. */
  readonly failures: number
}

/** The circuit as it is, for whoever decides on it. */
export interface PresentCircuit {
  readonly circuit: Circuit
  /** The version of its last fact. */
  readonly generation: number
  /** The store's clock: all workers measure how long a circuit stays open with the same one. */
  readonly now: DateTime.Utc
}

/**
 * The circuit of each destination: its facts, on the journal `circuit-<destination>`, and its state, which
 * `Queue.claim` and the gate of `EventStore.append` obey.
 *
 * - `append` is a compare-and-set on the generation, the version of the last fact: of several writers at the same generation one
 *   succeeds. Facts and state change in one transaction, so they never disagree, whatever crashes when.
 * - `report` adds to the count of failures of a closed circuit, and widens the limit of a circuit that was just closed.
 *   A report of an older generation changes nothing and is not answered. It changes no status: that takes facts, which
 *   the reporting worker decides from the answer.
 * - A circuit without facts is closed.
 * - `present` folds the last facts alone, however many there are: a destination that is down for years has one every few minutes.
 *
 * The one fact that is not written here is `CircuitProbed`: `Queue.claim` writes it when it hands out a probe.
 */
export class Circuits extends Context.Service<
  Circuits,
  {
    readonly present: (destination: DestinationId) => FromStore<PresentCircuit>
    /** In the order of `destinations`. */
    readonly states: (destinations: ReadonlyArray<DestinationId>) => FromStore<ReadonlyArray<CircuitState>>
    /** At most one report per destination. Each report of the current generation is answered with the state after it. */
    readonly report: (reports: ReadonlyArray<Report>) => FromStore<ReadonlyMap<DestinationId, CircuitState>>
    /** The org of a destination, also of a removed one; null for a destination the store does not know. */
    readonly orgOf: (destination: DestinationId) => FromStore<OrgId | null>
    /** `after` is the state of the circuit once the facts are written. */
    readonly append: (
      destination: DestinationId,
      generation: number,
      facts: ReadonlyArray<CircuitFact>,
      after: CircuitState,
      actor: string | null
    ) => FromStore<"Appended" | "VersionConflict">
  }
>()("posthaste/application/ports/Circuits") {}
