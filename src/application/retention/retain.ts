/**
 * Forgets messages that ended well and are old enough, and events without messages, all day long in small steps with pauses, so
 * that the service stays fast. Dead letters have a life of their own, which is long, and so have journals that tell of one deed.
 */
import { DateTime, Duration, Effect } from "effect"
import { background } from "../background.ts"
import { Retention } from "../ports/Retention.ts"

const AT_ONCE = 1_000
const PAUSE = Duration.millis(200)
/** A pass for every hour, and of messages that are kept for minutes a pass for each. */
const EVERY = Duration.hours(1)
const OFTEN = Duration.minutes(1)
/** Of how long messages are kept, so much passes between two passes. */
const SHARE = 24
/** A start has more urgent work. */
const FIRST_AFTER = Duration.minutes(1)

export interface Lives {
  /** Of what ended well. */
  readonly keep: Duration.Duration
  /** Of dead letters and of deeds; null: for ever. */
  readonly keepDead: Duration.Duration | null
}

/** One pass over all messages, then over all events and deeds; answers how many it deleted. It stops early when another process does the same. */
export const forgetEnded = Effect.fnUntraced(function* ({ keep, keepDead }: Lives) {
  const retention = yield* Retention
  const now = yield* DateTime.now
  const before = DateTime.subtractDuration(now, keep)
  const deadBefore = keepDead === null ? null : DateTime.subtractDuration(now, keepDead)
  const messages = yield* sweepAll((...asked) => retention.sweep(...asked, deadBefore), before)
  // An event goes once its messages are gone.
  const events = yield* sweepAll(retention.sweepEvents, before)
  return { messages, events, deeds: deadBefore === null ? 0 : yield* sweepAll(retention.sweepDeeds, deadBefore) }
})

const sweepAll = Effect.fnUntraced(function* (sweep: Retention["Service"]["sweepEvents"], before: DateTime.Utc) {
  let removed = 0
  let from: string | null = null
  for (;;) {
    const swept: Effect.Success<ReturnType<typeof sweep>> = yield* sweep(before, from, AT_ONCE)
    if (swept === null) return removed
    removed += swept.removed
    if (swept.next === null) return removed
    from = swept.next
    yield* Effect.sleep(PAUSE)
  }
})

/** The next pass completes a failed one. */
export const retain = (lives: Lives) => {
  const every = Duration.clamp(Duration.divideUnsafe(lives.keep, SHARE), { minimum: OFTEN, maximum: EVERY })
  const pass = Effect.flatMap(forgetEnded(lives), ({ messages, events, deeds }) =>
    messages + events + deeds === 0
      ? Effect.void
      : Effect.logInfo(`${messages} messages, ${events} events and ${deeds} journals of deeds were forgotten`)
  )
  return Effect.andThen(
    Effect.sleep(FIRST_AFTER),
    background("forgetting old messages", Effect.andThen(pass, Effect.sleep(every)), every)
  )
}
