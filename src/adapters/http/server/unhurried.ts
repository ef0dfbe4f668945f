/**
 * Whoever asks again at once whenever it is refused takes the one thread of this process from everybody: two hundred of these made
 * others' requests wait for ten seconds, each of their steps behind two hundred refusals. So when more are refused for asking too
 * much (429) than `AT_ONCE` in a second, their answers wait, as they tell callers to do, and go one by one.
 */
import { Clock, Context, Effect } from "effect"

/** Refusals of all callers that are answered at once, in a second. */
const AT_ONCE = 50
const WAIT_MS = 1_000
/** Between two that waited: those who ask again as soon as they are answered ask together, and two hundred answers kept the loop for 20 ms. */
const APART_MS = 2
/** Beyond these refusals are answered at once again: a connection that waits for its answer makes no room for others. */
const WAITING_MAX = 1_000

export const makeUnhurried = (): Effect.Effect<void> => {
  let since = Number.NEGATIVE_INFINITY
  let refused = 0
  let waiting = 0
  let lastAt = Number.NEGATIVE_INFINITY
  const wait = Effect.clockWith((clock) => {
    const now = Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    lastAt = Math.max(now + WAIT_MS, lastAt + APART_MS)
    waiting++
    return Effect.ensuring(
      Effect.sleep(lastAt - now),
      Effect.sync(() => waiting--)
    )
  })
  return Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (Math.abs(now - since) >= 1_000) {
      since = now
      refused = 0
    }
    return ++refused <= AT_ONCE || waiting >= WAITING_MAX ? Effect.void : wait
  })
}

/** One for all requests of the process. */
export const Unhurried = Context.Reference<Effect.Effect<void>>("posthaste/adapters/http/server/unhurried", {
  defaultValue: makeUnhurried
})
