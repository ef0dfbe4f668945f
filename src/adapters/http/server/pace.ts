/**
 * The pace of an org's batches while other orgs ask too: what is accepted together goes to the store, and then the others have the
 * store to themselves for twice as long as that took. Only what the org sends next waits for it. An org that asks alone is not held back.
 *
 * What is accepted costs as much again to deliver and to list. With a pause that was no longer than the piece itself, the two cores of a small
 * machine were never idle, and half of a neighbour's requests waited 6 ms, where they take 4 alone and beside this.
 */
import { Clock, Duration, Effect } from "effect"
import type { Asking } from "../../../application/askers.ts"

/** Of an org that nothing is known of yet. */
const FIRST_MS = 5
/** What takes longer waits for something else than the work. */
const LONGEST_MS = 500
const ORGS_MAX = 10_000
/** How long the others have the store, as a multiple of what a piece took. */
const LEFT_TO_OTHERS = 2

export interface Pace {
  /** Begins when it is the org's time. */
  readonly paced: <A, E, R>(org: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const makePace = (askers: Asking): Pace => {
  const known = new Map<string, { freeAt: number; tookMs: number }>()

  const ofOrg = (org: string) => {
    const own = known.get(org) ?? { freeAt: Number.NEGATIVE_INFINITY, tookMs: FIRST_MS }
    if (known.size >= ORGS_MAX) known.clear()
    known.set(org, own)
    return own
  }

  const paced: Pace["paced"] = (org, effect) =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      const own = ofOrg(org)
      const askedAt = now()
      const beginAt = askers.areSeveral(askedAt) ? Math.max(askedAt, own.freeAt) : askedAt
      own.freeAt = beginAt + (1 + LEFT_TO_OTHERS) * own.tookMs
      const timed = Effect.suspend(() => {
        const begunAt = now()
        const note = Effect.sync(() => {
          own.tookMs = Math.min(now() - begunAt, LONGEST_MS)
        })
        return Effect.ensuring(effect, note)
      })
      return beginAt === askedAt ? timed : Effect.delay(timed, Duration.millis(beginAt - askedAt))
    })

  return { paced }
}
