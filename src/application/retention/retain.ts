/**
 * Forgets messages that ended well and are old enough, and events without messages, all day long in small steps with pauses, so
 * that the service stays fast. Dead letters have a life of their own, which is long, and so have journals that tell of one deed, and
 * destinations that were removed.
 */
import { DateTime, Duration, Effect } from "effect"
import { background } from "../background.ts"
import type { FromStore } from "../errors.ts"
import { readUntil } from "../log/readUntil.ts"
import { Channels } from "../ports/Channels.ts"
import { Retention, type Sweep } from "../ports/Retention.ts"

const AT_ONCE = 1_000
/** While a destination is looked at, nobody accepts messages for it, and some others. */
const FEW = 100
const PAUSE = Duration.millis(200)
/** A pass for every hour, and of messages that are kept for minutes a pass for each. */
const EVERY = Duration.hours(1)
const OFTEN = Duration.minutes(1)
/** Of how long messages are kept, so much passes between two passes. */
const SHARE = 24
/** A start has more urgent work. */
const FIRST_AFTER = Duration.minutes(1)

export interface Lives {
  /** Of what ended well; null: for ever. */
  readonly keep: Duration.Duration | null
  /** Of dead letters, of deeds, of destinations from when they were removed, and of the fronts of journals that go on for ever; null: for ever. */
  readonly keepDead: Duration.Duration | null
  /** The most that an org's own settings may say; null: there is no most. */
  readonly daysMax: number | null
}

/**
 * One pass over all messages, then over all events, deeds, removed destinations and journals that go on for ever; answers how many it
 * deleted. It stops early when another process does the same.
 */
export const forgetEnded = Effect.fnUntraced(function* ({ keep, keepDead, daysMax }: Lives) {
  const retention = yield* Retention
  const now = yield* DateTime.now
  const ago = (life: Duration.Duration | null) => (life === null ? null : DateTime.subtractDuration(now, life))
  const before = { now, ended: ago(keep), dead: ago(keepDead), daysMax }
  const messages = yield* sweepAll(retention.sweep, before)
  // An event goes once its messages are gone.
  const events = yield* sweepAll(retention.sweepEvents, before)
  if (before.dead === null) return { messages, events, deeds: 0, destinations: 0, fronts: 0 }
  const deeds = yield* sweepAll(retention.sweepDeeds, before.dead)
  const journals = new Map([...(yield* Channels)].map(([name, { journal }]) => [name, journal]))
  const destinations = yield* sweepAll(
    (removedBefore: DateTime.Utc, from, limit) => retention.sweepDestinations(removedBefore, journals, from, limit),
    DateTime.min(before.dead, yield* readUntil),
    FEW
  )
  const fronts = yield* sweepAll(retention.sweepFronts, before.dead)
  return { messages, events, deeds, destinations, fronts }
})

const sweepAll = Effect.fnUntraced(function* <Old>(
  sweep: (before: Old, from: string | null, limit: number) => FromStore<Sweep | null>,
  before: Old,
  limit = AT_ONCE
) {
  let removed = 0
  let from: string | null = null
  for (;;) {
    const swept: Sweep | null = yield* sweep(before, from, limit)
    if (swept === null) return removed
    removed += swept.removed
    if (swept.next === null) return removed
    from = swept.next
    yield* Effect.sleep(PAUSE)
  }
})

/** The next pass completes a failed one. */
export const retain = (lives: Lives) => {
  const share = lives.keep === null ? EVERY : Duration.divideUnsafe(lives.keep, SHARE)
  const every = Duration.clamp(share, { minimum: OFTEN, maximum: EVERY })
  const pass = Effect.flatMap(forgetEnded(lives), ({ messages, events, deeds, destinations, fronts }) =>
    messages + events + deeds + destinations + fronts === 0
      ? Effect.void
      : Effect.logInfo(
          `${messages} messages, ${events} events, ${deeds} journals of deeds, ${destinations} removed destinations and ${fronts} facts of other journals were forgotten`
        )
  )
  return Effect.andThen(
    Effect.sleep(FIRST_AFTER),
    background("forgetting old messages", Effect.andThen(pass, Effect.sleep(every)), every)
  )
}
