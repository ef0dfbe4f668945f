/**
 * Follows the log under a name, one process at a time: holds the follower, reads the next facts, does the step,
 * advances the position. A crash repeats a step, so doing it twice must do it once. A holder knows its position, and
 * asks for nothing while the log does not grow.
 */
import { Clock, Duration, Effect, Option } from "effect"
import { newHolder } from "../newHolder.ts"
import type { LoggedFact, Position } from "../ports/EventStore.ts"
import { type Follower, Followers } from "../ports/Followers.ts"
import { LogReader } from "./LogReader.ts"

const LEASE = Duration.seconds(10)
/** Well within the lease. A holder that has nothing to do waits no longer. */
const RENEW_EVERY = Duration.seconds(5)
const PAUSE_OTHER = Duration.seconds(5)
const LEASE_NANOS = Duration.toNanosUnsafe(LEASE)
const RENEW_NANOS = Duration.toNanosUnsafe(RENEW_EVERY)

type StepOf<A, E, R> = (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<A, E, R>

const stepFrom = Effect.fnUntraced(function* <A, E, R>(
  name: Follower,
  from: Position | null,
  atOnce: number,
  step: StepOf<A, E, R>
) {
  const facts = yield* (yield* LogReader).read(from, atOnce)
  const last = facts.at(-1)
  if (last === undefined) return null
  yield* step(facts)
  return { position: last.position, isMoved: yield* (yield* Followers).advance(name, from, last.position) }
})

export const followOnce = Effect.fnUntraced(function* <A, E, R>(name: Follower, atOnce: number, step: StepOf<A, E, R>) {
  return (yield* stepFrom(name, yield* (yield* Followers).position(name), atOnce, step)) !== null
})

/** Answers a step for a loop: it takes or renews the lease, follows once, and waits where there is nothing to do. */
export const follow = Effect.fnUntraced(function* <A, E, R>(name: Follower, atOnce: number, step: StepOf<A, E, R>) {
  const followers = yield* Followers
  const { news } = yield* LogReader
  const holder = yield* newHolder
  const clock = yield* Clock.Clock
  let heldAt = 0n
  // Only the holder moves it. At the end of the log nothing is read before there are news.
  let at: { readonly position: Position | null; readonly isEnd: boolean } | null = null
  return Effect.gen(function* () {
    const now = clock.monotonicTimeNanosUnsafe()
    if (at === null || now >= heldAt + RENEW_NANOS) {
      if (now >= heldAt + LEASE_NANOS) at = null
      if (!(yield* followers.hold(name, holder, LEASE))) {
        at = null
        return yield* Effect.sleep(PAUSE_OTHER)
      }
      heldAt = now
    }
    const { position, isEnd }: NonNullable<typeof at> = at ?? {
      position: yield* followers.position(name),
      isEnd: false
    }
    at = null
    if (isEnd) {
      const left = Duration.nanos(heldAt + RENEW_NANOS - clock.monotonicTimeNanosUnsafe())
      at = { position, isEnd: Option.isNone(yield* Effect.timeoutOption(news(position), left)) }
      return
    }
    const taken = yield* stepFrom(name, position, atOnce, step)
    if (taken === null) at = { position, isEnd: true }
    else if (taken.isMoved) at = { position: taken.position, isEnd: false }
  })
})
