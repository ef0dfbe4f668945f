/**
 * Follows the log under a name, one process at a time:
 *
 *   hold      the follower, so that no other process does the same
 *   read      the next facts
 *   step      whatever the follower does with them; doing it again must do it once
 *   advance   the position
 *
 * A crash before the last one repeats the others.
 */
import { Duration, Effect } from "effect"
import { newHolder } from "../newHolder.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { type Follower, Followers } from "../ports/Followers.ts"
import { LogReader } from "./LogReader.ts"

const LEASE = Duration.seconds(10)
const PAUSE_OTHER = Duration.seconds(2)
/** A holder that has nothing to do renews its lease in time. */
const NEWS_WITHIN = Duration.seconds(3)

type StepOf<A, E, R> = (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<A, E, R>

/** One step from where the follower stands. Answers whether there were facts. */
export const followOnce = Effect.fnUntraced(function* <A, E, R>(name: Follower, atOnce: number, step: StepOf<A, E, R>) {
  const followers = yield* Followers
  const from = yield* followers.position(name)
  const facts = yield* (yield* LogReader).read(from, atOnce)
  const last = facts.at(-1)
  if (last === undefined) return false
  yield* step(facts)
  yield* followers.advance(name, from, last.position)
  return true
})

/** Answers a step for a loop: it takes or renews the lease, follows once, and waits where there is nothing to do. */
export const follow = Effect.fnUntraced(function* <A, E, R>(name: Follower, atOnce: number, step: StepOf<A, E, R>) {
  const followers = yield* Followers
  const { news } = yield* LogReader
  const holder = yield* newHolder
  return Effect.gen(function* () {
    if (!(yield* followers.hold(name, holder, LEASE))) return yield* Effect.sleep(PAUSE_OTHER)
    if (yield* followOnce(name, atOnce, step)) return
    yield* Effect.timeoutOption(news(yield* followers.position(name)), NEWS_WITHIN)
  })
})
