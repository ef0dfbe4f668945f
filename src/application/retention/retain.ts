/**
 * Forgets messages that ended well and are old enough, once a day, in small steps with pauses, so that the service
 * stays fast. Dead letters stay until they are replayed.
 */
import { DateTime, Duration, Effect } from "effect"
import { background } from "../background.ts"
import { Retention } from "../ports/Retention.ts"

const AT_ONCE = 1_000
const PAUSE = Duration.millis(200)
const EVERY = Duration.hours(24)
/** A start has more urgent work. */
const FIRST_AFTER = Duration.minutes(1)

/** One pass over all messages; answers how many it deleted. It stops early when another process does the same. */
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

/** The next pass completes a failed one. */
export const retain = (keep: Duration.Duration) => {
  const pass = Effect.flatMap(forgetEnded(keep), (removed) =>
    removed === 0 ? Effect.void : Effect.logInfo(`${removed} messages that ended well were forgotten`)
  )
  return Effect.andThen(
    Effect.sleep(FIRST_AFTER),
    background("forgetting old messages", Effect.andThen(pass, Effect.sleep(EVERY)), EVERY)
  )
}
