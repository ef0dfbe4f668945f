export interface CircuitPolicy {
  /** Failures in a row, over all workers. */
  readonly failuresMax: number
  readonly openMs: number
  readonly openMaxMs: number
}

export const circuitDefaults: CircuitPolicy = { failuresMax: 5, openMs: 30_000, openMaxMs: 15 * 60_000 }

/** Spreads the probes of circuits that opened together. It only lengthens. */
const JITTER = 0.2

/** The open time after opening number `openings` (1, 2, …): doubling up to the cap. */
export const openWaitMs = ({ openMs, openMaxMs }: CircuitPolicy, openings: number, die: number): number =>
  Math.round(Math.min(openMs * 2 ** (openings - 1), openMaxMs) * (1 + JITTER * die))

/** Messages of a lane under way in one worker right after its circuit closed. */
export const IN_FLIGHT_FIRST = 1
/** No destination allows more than 1,000; from half of that on the limit does nothing. */
export const IN_FLIGHT_LAST = 512

export const widened = (inFlightMax: number | null): number | null =>
  inFlightMax === null || inFlightMax >= IN_FLIGHT_LAST ? null : inFlightMax * 2

/**
 * The time within which a probe must start after its hand-out. A later one goes back: its permit must outlast its
 * request.
 */
export const PROBE_FRESH_MS = 1_000

/** The part of a permit for the steps before and after the longest request. */
export const PERMIT_SPARE_MS = 2_000
export const TIMEOUT_UNKNOWN_MS = 30_000
