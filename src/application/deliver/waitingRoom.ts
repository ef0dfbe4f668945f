/**
 * What this process has claimed and not yet started, lane by lane. Actors take from lanes in turn, never
 * beyond a lane's capacity, and no lane has more under way than there are idle actors left: one that hangs takes
 * half of them at most, a second half of the rest, and so on. Without that a dozen destinations that hang, each
 * within its own capacity, held all actors, and the others waited for their timeouts (p50 6 s, measured).
 *
 * How much of a lane is held in advance follows how fast the lane moves: a fast one is kept full, one that
 * hangs is left in the queue, where other workers and cancellations can reach it.
 *
 * Plain synchronous data; it knows neither the queue nor the clock.
 */
import { Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"

const WINDOW_MIN = 16
const WINDOW_MAX = 500
/** For a lane we know nothing about yet. */
export const WINDOW_FIRST = 64

interface Lane<A> {
  readonly id: DestinationId
  capacity: number
  /** While traffic comes back to a destination that was down; infinite otherwise. */
  limit: number
  underWay: number
  waiting: Array<A>
  window: number
  /** Sends that ended since the window was last looked at. */
  ended: number
  /** Stands in the ring of lanes that could give something now. */
  inRing: boolean
}

export interface WaitingRoom<A> {
  readonly offer: (lane: DestinationId, capacity: number, items: ReadonlyArray<A>, limit?: number | null) => void
  /** The next item of the lane whose turn it is; parks until there is one. Its slot is taken until `ended`. */
  readonly take: Effect.Effect<A>
  readonly ended: (lane: DestinationId) => void
  /** From now on so many of the lane may be under way, as far as its capacity allows; null: no other limit. */
  readonly limit: (lane: DestinationId, limit: number | null) => void
  /** Takes back what waits in the lane and matches. */
  readonly withdraw: (lane: DestinationId, matches: (item: A) => boolean) => ReadonlyArray<A>
  /** How much more of each known lane is wanted now; 0 where there is enough. */
  readonly room: () => ReadonlyMap<DestinationId, number>
  /** How much could start at once if there were actors for it. */
  readonly startable: () => number
  /** Returns when a lane could use more than it holds; remembers one such moment. */
  readonly hungry: Effect.Effect<void>
  /** Empties every lane. */
  readonly drain: () => ReadonlyArray<A>
}

/** `slots` is the number of actors. */
export const makeWaitingRoom = <A>(slots: number): WaitingRoom<A> => {
  const lanes = new Map<DestinationId, Lane<A>>()
  let ring: Array<Lane<A>> = []
  const parked: Array<(item: A) => void> = []
  let busy = 0
  let appetite = false
  let onAppetite: (() => void) | null = null

  const free = (lane: Lane<A>) => Math.min(lane.capacity, lane.limit) - lane.underWay
  const mayGive = (lane: Lane<A>) => lane.underWay < slots - busy
  /** How many more of the lane could start now: each takes an idle actor and uses one of the lane's share. */
  const open = (lane: Lane<A>) => Math.max(Math.min(free(lane), Math.ceil((slots - busy - lane.underWay) / 2)), 0)

  const enter = (lane: Lane<A>) => {
    if (lane.inRing || lane.waiting.length === 0 || free(lane) <= 0) return
    lane.inRing = true
    ring.push(lane)
  }

  /** Has nothing to give any more: what waited was taken back, or fewer may be under way. */
  const leave = (lane: Lane<A>) => {
    if (!lane.inRing || (lane.waiting.length > 0 && free(lane) > 0)) return
    lane.inRing = false
    ring.splice(ring.indexOf(lane), 1)
  }

  const next = (): A | null => {
    for (let left = ring.length; left > 0; left--) {
      const lane = ring.shift()!
      if (!mayGive(lane)) {
        ring.push(lane)
        continue
      }
      lane.inRing = false
      const item = lane.waiting.shift()!
      lane.underWay += 1
      busy += 1
      enter(lane)
      if (lane.waiting.length <= lane.window >> 1) wakeFeeder()
      return item
    }
    return null
  }

  const wakeFeeder = () => {
    appetite = true
    onAppetite?.()
  }

  const serve = () => {
    while (parked.length > 0) {
      const item = next()
      if (item === null) return
      // The actor that parked last has the warmest caches.
      parked.pop()!(item)
    }
  }

  return {
    offer: (id, capacity, items, limit = null) => {
      let lane = lanes.get(id)
      if (lane === undefined) {
        lane = {
          id,
          capacity,
          limit: Number.POSITIVE_INFINITY,
          underWay: 0,
          waiting: [],
          window: WINDOW_FIRST,
          ended: 0,
          inRing: false
        }
        lanes.set(id, lane)
      }
      lane.capacity = capacity
      lane.limit = limit ?? Number.POSITIVE_INFINITY
      lane.waiting.push(...items)
      leave(lane)
      enter(lane)
      serve()
    },
    take: Effect.callback<A>((resume) => {
      const item = parked.length === 0 ? next() : null
      if (item !== null) return resume(Effect.succeed(item))
      const wake = (given: A) => resume(Effect.succeed(given))
      parked.push(wake)
      return Effect.sync(() => {
        const at = parked.indexOf(wake)
        if (at >= 0) parked.splice(at, 1)
      })
    }),
    ended: (id) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      lane.underWay -= 1
      busy -= 1
      lane.ended += 1
      if (lane.underWay === 0 && lane.waiting.length === 0) lanes.delete(id)
      else enter(lane)
      serve()
    },
    limit: (id, limit) => {
      const lane = lanes.get(id)
      if (lane !== undefined) {
        lane.limit = limit ?? Number.POSITIVE_INFINITY
        leave(lane)
        enter(lane)
        serve()
      }
      wakeFeeder()
    },
    withdraw: (id, matches) => {
      const lane = lanes.get(id)
      if (lane === undefined) return []
      const items = lane.waiting.filter(matches)
      lane.waiting = lane.waiting.filter((item) => !matches(item))
      leave(lane)
      if (lane.underWay === 0 && lane.waiting.length === 0) lanes.delete(id)
      return items
    },
    room: () => {
      const room = new Map<DestinationId, number>()
      for (const lane of lanes.values()) {
        lane.window = Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, 4 * lane.ended, lane.window >> 1))
        lane.ended = 0
        const wanted = lane.window + open(lane) - lane.waiting.length
        // A trickle of tiny claims costs more than waiting for half a window.
        room.set(lane.id, wanted >= lane.window >> 1 ? wanted : 0)
      }
      return room
    },
    startable: () => [...lanes.values()].reduce((sum, lane) => sum + Math.min(open(lane), lane.waiting.length), 0),
    hungry: Effect.callback<void>((resume) => {
      const wake = () => {
        appetite = false
        onAppetite = null
        resume(Effect.void)
      }
      if (appetite) return wake()
      onAppetite = wake
      return Effect.sync(() => {
        if (onAppetite === wake) onAppetite = null
      })
    }),
    drain: () => {
      const items = [...lanes.values()].flatMap(({ waiting }) => waiting)
      for (const lane of lanes.values()) {
        lane.waiting = []
        lane.inRing = false
      }
      ring = []
      return items
    }
  }
}
