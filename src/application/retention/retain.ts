/**
 * Forgets messages that ended well and are old enough, and events without messages, once a day, in small steps with pauses, so that the service
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

/** One pass over all messages, and then over all events; answers how many it deleted. It stops early when another process does the same. */
export const forgetEnded = Effect.fnUntraced(function* (keep: Duration.Duration) {
  const retention = yield* Retention
  const before = DateTime.subtractDuration(yield* DateTime.now, keep)
  const messages = yield* sweepAll(retention.sweep, before)
  // An event goes once its messages are gone.
  return { messages, events: yield* sweepAll(retention.sweepEvents, before) }
})

const sweepAll = Effect.fnUntraced(function* (sweep: Retention["Service"]["sweep"], before: DateTime.Utc) {
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
export const retain = (keep: Duration.Duration) => {
  const pass = Effect.flatMap(forgetEnded(keep), ({ messages, events }) =>
    messages + events === 0
      ? Effect.void
      : Effect.logInfo(`${messages} messages that ended well and ${events} events were forgotten`)
  )
  return Effect.andThen(
    Effect.sleep(FIRST_AFTER),
    background("forgetting old messages", Effect.andThen(pass, Effect.sleep(EVERY)), EVERY)
  )
}
