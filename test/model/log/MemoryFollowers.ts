import { DateTime, Effect, Layer } from "effect"
import { type Follower, Followers, type Notice } from "../../../src/application/ports/Followers.ts"
import { type FollowerRow, Memory } from "../Memory.ts"

const keyOf = ({ target, destination }: Notice) => `${target} ${destination}`
const fresh: FollowerRow = { begun: false, position: null, holder: null, until: null }

/** A row for each follower, and a map of notices. */
export const layer = Layer.effect(
  Followers,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { followers, notices } = tables
    const rowOf = (follower: Follower) => followers.get(follower) ?? fresh
    return Followers.of({
      position: (follower) => Effect.sync(() => rowOf(follower).position),
      begin: (follower, position) =>
        Effect.sync(() => {
          const row = rowOf(follower)
          if (!row.begun) followers.set(follower, { ...row, begun: true, position })
        }),
      hold: (follower, holder, lease) =>
        Effect.sync(() => {
          const row = rowOf(follower)
          const isFree = row.until === null || DateTime.isLessThan(row.until, now())
          if (row.holder !== holder && !isFree) return false
          followers.set(follower, { ...row, holder, until: DateTime.addDuration(now(), lease) })
          return true
        }),
      advance: (follower, from, to) =>
        Effect.sync(() => {
          const row = rowOf(follower)
          if (row.position !== from) return false
          followers.set(follower, { ...row, begun: true, position: to })
          return true
        }),
      notices: (destinations) =>
        Effect.sync(() => [...notices.values()].filter(({ destination }) => destinations.includes(destination))),
      note: (added, forget) =>
        Effect.sync(() => {
          for (const [key, { at }] of notices) if (DateTime.isLessThan(at, forget)) notices.delete(key)
          for (const notice of added) notices.set(keyOf(notice), notice)
        })
    })
  })
)
