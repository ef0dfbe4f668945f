/** When a circuit opens, how long it stays open, and how traffic comes back. Data in, data out. */

export interface CircuitPolicy {
  /** Failures in a row, over all workers, that open it. */
  readonly failuresMax: number
  /** The first open time. */
  readonly openMs: number
  /** The longest open time, however often the circuit re-opens. */
  readonly openMaxMs: number
}

export const circuitDefaults: CircuitPolicy = { failuresMax: 5, openMs: 30_000, openMaxMs: 15 * 60_000 }

/** Circuits that opened together should not probe together. An open time is never shorter than planned. */
const JITTER = 0.2

/** The open time in milliseconds after opening number `openings` (1, 2, …): doubling up to the cap. */
export const openWaitMs = ({ openMs, openMaxMs }: CircuitPolicy, openings: number, die: number): number =>
  Math.round(Math.min(openMs * 2 ** (openings - 1), openMaxMs) * (1 + JITTER * die))

/** How many messages of a lane may be under way in one worker right after its circuit closed. */
export const IN_FLIGHT_FIRST = 1
/** No destination allows more than 1,000: beyond half of that the limit has nothing left to do. */
export const IN_FLIGHT_LAST = 512

/** The limit after one more success; null when no limit is left. */
export const widened = (inFlightMax: number | null): number | null =>
  inFlightMax === null || inFlightMax >= IN_FLIGHT_LAST ? null : inFlightMax * 2

/** How long after its hand-out a probe may start. A later one goes back: its permit must outlast its request. */
export const PROBE_FRESH_MS = 1_000

/** Between the end of the longest request and the end of its permit: for the steps before and after the request. */
export const PERMIT_SPARE_MS = 2_000
/** The time a request may take when the destination's settings name none. */
export const TIMEOUT_UNKNOWN_MS = 30_000
