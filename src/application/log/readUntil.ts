/**
 * Until when everybody has read the log who keeps a place in it and goes by facts of journals: each projection, also one that is being built, and alerts.
 * Subscribers of the feed keep their own places, and nobody knows them.
 */
import { DateTime, Duration, Effect } from "effect"
import { AlertProgress } from "../ports/AlertProgress.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Projections } from "../ports/Projections.ts"

/** Facts stand in the log in the order in which they were committed: one may be older than another that stands before it, by less than this. */
export const COMMITTED_WITHIN = Duration.minutes(1)

export const readUntil = Effect.gen(function* () {
  const store = yield* EventStore
  // Before the look: what is committed during the look may be missed by it.
  const now = yield* DateTime.now
  const runs = yield* (yield* Projections).runs
  const positions = new Set([...runs.map(({ position }) => position), yield* (yield* AlertProgress).position])
  const unread = yield* Effect.forEach(positions, store.unreadSince)
  const first = unread.reduce<DateTime.Utc>(
    (earliest, at) => (at === null ? earliest : DateTime.min(earliest, at)),
    now
  )
  return DateTime.subtractDuration(first, COMMITTED_WITHIN)
})
