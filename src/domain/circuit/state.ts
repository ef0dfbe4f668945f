/**
 * The state of a circuit as its lane obeys it: its facts, and two counts that are no facts (failures in a row while
 * closed, and the limit while traffic comes back).
 */
import type { DateTime } from "effect"
import type { Circuit } from "./decider.ts"
import type { CircuitStatus } from "./machine.ts"
import { IN_FLIGHT_FIRST } from "./policy.ts"

export interface CircuitState {
  readonly status: CircuitStatus
  /** The version of the circuit's last fact; every change is a compare-and-set on it. */
  readonly generation: number
  readonly failures: number
  readonly blockedUntil: DateTime.Utc | null
  /** Messages under way in one worker; null when only the destination's own limit applies. */
  readonly inFlightMax: number | null
}

export const initialState: CircuitState = {
  status: "CLOSED",
  generation: 0,
  failures: 0,
  blockedUntil: null,
  inFlightMax: null
}

/** The state right after the circuit's last fact: one that was just closed lets traffic come back slowly. */
export const stateOf = ({ status, memory }: Circuit, generation: number): CircuitState => ({
  status,
  generation,
  failures: memory.failures,
  blockedUntil: memory.until,
  inFlightMax: status === "CLOSED" && generation > 0 ? IN_FLIGHT_FIRST : null
})
