/**
 * One watch for all deadlines, cheaper than a timer per request: it looks every 25 ms and sleeps when idle. A deadline
 * is met up to a tick late, never early.
 */
import { type Clock, Effect, Latch } from "effect"

const TICK = "25 millis"

export interface Expiring {
  /** Not called again after true. */
  readonly expired: (now: bigint) => boolean
}

/** `onExpired` is called once for each. */
export const makeDeadlines = Effect.fnUntraced(function* <A extends Expiring>(
  clock: Clock.Clock,
  onExpired: (one: A) => void
) {
  const watched = new Set<A>()
  const busy = Latch.makeUnsafe(false)

  const look = Effect.sync(() => {
    const now = clock.monotonicTimeNanosUnsafe()
    const late = [...watched].filter((one) => one.expired(now))
    for (const one of late) watched.delete(one)
    // The youngest first: a waiting request must not inherit the connection of one that expires too.
    for (const one of late.toReversed()) onExpired(one)
    if (watched.size === 0) busy.closeUnsafe()
  })
  yield* busy.await.pipe(Effect.andThen(Effect.sleep(TICK)), Effect.andThen(look), Effect.forever, Effect.forkScoped)

  return {
    watch: (one: A) => {
      watched.add(one)
      if (watched.size === 1) busy.openUnsafe()
    },
    forget: (one: A) => {
      watched.delete(one)
    }
  }
})
