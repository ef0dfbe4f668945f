/**
 * Forgets what has ended well and is old enough, once a day, in small steps with pauses: nobody else should
 * notice. Dead letters stay until somebody deals with them.
 */
import { DateTime, Duration, Effect } from "effect"
import { background } from "../background.ts"
import { Retention } from "../ports/Retention.ts"

const AT_ONCE = 1_000
const PAUSE = Duration.millis(200)
const EVERY = Duration.hours(24)
/** A start has better things to do. */
const FIRST_AFTER = Duration.minutes(1)

/** One pass over everything; answers how many messages went. Stops early where another process is at it. */
export const forgetEnded = Effect.fnUntraced(function* (keep: Duration.Duration) {
  const retention = yield* Retention
  const endedBefore = DateTime.subtractDuration(yield* DateTime.now, keep)
  let removed = 0
  let from: string | null = null
  for (;;) {
    const sweep: Effect.Success<ReturnType<typeof retention.sweep>> = yield* retention.sweep(endedBefore, from, AT_ONCE)
    if (sweep === null) return removed
    removed += sweep.removed
    if (sweep.next === null) return removed
    from = sweep.next
    yield* Effect.sleep(PAUSE)
  }
})

/** Runs until interrupted. What a failed pass left over goes with the next. */
export const retain = (keep: Duration.Duration) => {
  const pass = Effect.flatMap(forgetEnded(keep), (removed) =>
    removed === 0 ? Effect.void : Effect.logInfo(`${removed} messages that ended well were forgotten`)
  )
  return Effect.andThen(
    Effect.sleep(FIRST_AFTER),
    background("forgetting old messages", Effect.andThen(pass, Effect.sleep(EVERY)), EVERY)
  )
}
