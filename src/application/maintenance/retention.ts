/**
 * Deletes messages that are over and old enough, events without messages, and removed destinations, in steps of at most
 * a tenth of a second.
 */
import { Clock, DateTime, Duration, Effect } from "effect"
import { Channels } from "../ports/Channels.ts"
import type { FromStore } from "../ports/errors.ts"
import { type Before, Retention } from "../ports/Retention.ts"

const STEP_MAX_MS = 100
const [AT_ONCE_MIN, AT_ONCE_FIRST, AT_ONCE_MAX] = [100, 1_000, 20_000]
const DESTINATIONS_AT_ONCE = 1_000
const EVERY = Duration.hours(1)
const OFTEN = Duration.minutes(1)
const SHARE = 24

export interface Lives {
  /** Of messages that ended well; null: for ever. */
  readonly keep: Duration.Duration | null
  /** Of dead letters, of messages SENT, and of destinations from their removal; null: for ever. */
  readonly keepDead: Duration.Duration | null
  readonly daysMax: number | null
}

/** One pass; answers the numbers of deleted things. It stops early when another process does the same. */
export const forgetEnded = Effect.fnUntraced(function* ({ keep, keepDead, daysMax }: Lives) {
  const retention = yield* Retention
  const now = yield* DateTime.now
  const ago = (life: Duration.Duration | null) => (life === null ? null : DateTime.subtractDuration(now, life))
  const before: Before = { now, ended: ago(keep), dead: ago(keepDead), daysMax }
  const messages = yield* inSteps(
    Effect.fnUntraced(function* (from, limit) {
      const { messages, next } = yield* retention.find(before, from, limit)
      if (messages.length === 0) return { removed: 0, next }
      const removed = yield* retention.forget(messages)
      return removed === null ? { removed: 0, next: null } : { removed, next }
    })
  )
  const events = yield* inSteps((from, limit) => retention.forgetEvents(before, from, limit))
  if (before.dead === null) return { messages, events, destinations: 0 }
  const journals = new Map([...(yield* Channels)].map(([name, { journal }]) => [name, journal]))
  const destinations = yield* retention.forgetDestinations(before.dead, journals, DESTINATIONS_AT_ONCE)
  return { messages, events, destinations }
})

interface Step {
  readonly removed: number
  readonly next: string | null
}

/** Steps grow and shrink by how long they take. */
const inSteps = Effect.fnUntraced(function* (step: (from: string | null, limit: number) => FromStore<Step>) {
  const clock = yield* Clock.Clock
  let removed = 0
  let limit = AT_ONCE_FIRST
  for (let from: string | null = null; ; ) {
    const begun = clock.monotonicTimeNanosUnsafe()
    const done: Step = yield* step(from, limit)
    removed += done.removed
    if (done.next === null) return removed
    from = done.next
    const tookMs = Math.max(1, Number(clock.monotonicTimeNanosUnsafe() - begun) / 1e6)
    const wanted = limit * Math.min(2, STEP_MAX_MS / 2 / tookMs)
    limit = Math.round(Math.min(AT_ONCE_MAX, Math.max(AT_ONCE_MIN, wanted)))
    yield* Effect.yieldNow
  }
})

/** The next pass completes a failed one. */
export const retention = (lives: Lives) => {
  const share = lives.keep === null ? EVERY : Duration.divideUnsafe(lives.keep, SHARE)
  const every = Duration.clamp(share, { minimum: OFTEN, maximum: EVERY })
  const step = Effect.tap(forgetEnded(lives), ({ messages, events, destinations }) =>
    messages + events + destinations === 0
      ? Effect.void
      : Effect.logInfo(`${messages} messages, ${events} events and ${destinations} removed destinations were deleted`)
  )
  return { name: "deleting old messages", every, step } as const
}
