/**
 * Backoff that Meta asks for: 1 s, 4 s, 16 s, … Refusals during a wait don't prolong it. In memory only: another
 * process learns of a wait from Meta.
 */

export interface Throttles {
  readonly waitMs: (name: string, now: number) => number
  readonly refused: (name: string, now: number, atLeastMs: number) => number
  /** Ignored for what was sent before the last refusal. */
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
      // Re-inserted last, so that the oldest is forgotten first.
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
