/**
 * How long to stay away from what Meta throttles: 1 s, 4 s, 16 s, … after one refusal and the next, which is the
 * backoff Meta asks for. What is refused while the wait is on was under way already and makes it no longer.
 *
 * Kept in this process's memory: it spares refusals and is no promise. A process that does not know of a wait is
 * told by Meta.
 */

export interface Throttles {
  /** Milliseconds left to wait; 0 when nothing is known against it. */
  readonly waitMs: (name: string, now: number) => number
  /** Answers how long to wait from now on. */
  readonly refused: (name: string, now: number, atLeastMs: number) => number
  /** It is let through again; whatever was sent before a refusal and answered after it says nothing of the kind. */
  readonly passed: (name: string, now: number) => void
}

const FIRST_MS = 1_000
const GROWTH = 4
const WAIT_MAX_MS = 3_600_000
const REMEMBERED = 10_000

export const makeThrottles = (): Throttles => {
  const waits = new Map<string, { readonly refusals: number; readonly until: number }>()
  return {
    waitMs: (name, now) => Math.max(0, (waits.get(name)?.until ?? 0) - now),
    refused: (name, now, atLeastMs) => {
      const { refusals, until } = waits.get(name) ?? { refusals: 0, until: 0 }
      if (until > now) return until - now
      const wait = Math.min(Math.max(FIRST_MS * GROWTH ** refusals, atLeastMs), WAIT_MAX_MS)
      // The youngest last, so that the oldest is forgotten first.
      waits.delete(name)
      waits.set(name, { refusals: refusals + 1, until: now + wait })
      if (waits.size > REMEMBERED) waits.delete(waits.keys().next().value!)
      return wait
    },
    passed: (name, now) => {
      if ((waits.get(name)?.until ?? 0) <= now) waits.delete(name)
    }
  }
}
