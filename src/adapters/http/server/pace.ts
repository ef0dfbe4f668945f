/**
 * The pace of an org's batches while other orgs ask too: what is accepted together goes to the store, and then the others have the
 * store to themselves for eight times as long as that took; where several orgs send batches, they share that pause. Only what the org sends
 * next waits for it. An org that asks alone is not held back.
 *
 * What is accepted costs as much again to deliver and to list, and PostgreSQL does that on other cores than the ones that accept, as long as
 * there are some. With a pause of twice the piece, the two cores of a small machine were busy with an org that sent all it could, and the
 * slowest of a hundred requests of its neighbour waited five times as long as alone; with this one three times. It has a third of the
 * batches accepted.
 */
import { Clock, Duration, Effect } from "effect"
import type { Asking } from "../../../application/askers.ts"

/** Of an org that nothing is known of. */
const FIRST_MS = 5
/** What takes longer waits for something else than the work. */
const LONGEST_MS = 150
/** How long the others have the store, as a multiple of what a piece took. */
const LEFT_TO_OTHERS = 8
const ORGS_MAX = 10_000
/** Who sent none for so long has no part in the pause. */
const SENDS_FOR_MS = 1_000

export interface Pace {
  /** Begins when it is the org's time. */
  readonly paced: <A, E, R>(org: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const makePace = (askers: Asking): Pace => {
  const known = new Map<string, { freeAt: number; tookMs: number }>()
  /** When each of those who send batches sent the last; who sent last is the last. */
  const senders = new Map<string, number>()

  const ofOrg = (org: string) => {
    const own = known.get(org) ?? { freeAt: Number.NEGATIVE_INFINITY, tookMs: FIRST_MS }
    if (known.size >= ORGS_MAX) known.clear()
    known.set(org, own)
    return own
  }

  const sendersWith = (org: string, now: number): number => {
    senders.delete(org)
    senders.set(org, now)
    for (const [other, at] of senders) {
      if (at > now - SENDS_FOR_MS) break
      senders.delete(other)
    }
    return senders.size
  }

  const paced: Pace["paced"] = (org, effect) =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      const askedAt = now()
      const own = ofOrg(org)
      const beginAt = askers.areSeveral(askedAt) ? Math.max(askedAt, own.freeAt) : askedAt
      own.freeAt = beginAt + (1 + LEFT_TO_OTHERS / sendersWith(org, askedAt)) * own.tookMs
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
