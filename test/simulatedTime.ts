/**
 * Simulated time for tests over the model: dates, timers and the monotonic clock are replaced, and whenever nothing
 * can run, time jumps to the next timer. A wait of an hour costs nothing, a quiet or a busy machine makes no
 * difference, and every test begins at the same moment.
 *
 * Effect's TestClock does not do here: it moves only when a test says so, and a contract is the same text for the
 * model and for a real database, which waits for real. Nor would samples, which are made outside any effect, know
 * what time it is.
 *
 * It leaves out what the machine does itself: a test that opens a socket or starts a process keeps the real time.
 */
import { afterEach, beforeEach, vi } from "vitest"

/** What Effect holds on to as the monotonic clock. */
const hrtime = process.hrtime
const realBigint = hrtime.bigint
const begin = Date.UTC(2026, 0, 1, 12)

/** Every test of this file runs in simulated time. */
export const simulateTime = (): void => {
  beforeEach(() => {
    vi.useFakeTimers({ now: begin })
    vi.setTimerTickMode("nextTimerAsync")
    hrtime.bigint = process.hrtime.bigint
  })
  afterEach(() => {
    hrtime.bigint = realBigint
    vi.useRealTimers()
  })
}
