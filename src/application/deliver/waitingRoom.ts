/**
 * The messages that this process has claimed and not yet started, lane by lane. Actors take from the lanes in turn,
 * never beyond a lane's capacity.
 *
 * - A lane has at most as many messages under way as actors are idle: a lane that hangs takes half of the actors at
 *   most, a second one half of the rest, and so on. Without this, a dozen destinations that hang, each within its
 *   capacity, held all actors, and all other messages waited for their timeouts (p50 6 s, measured).
 * - How many messages of a lane are claimed in advance follows its speed. A fast lane is kept full; the messages of a
 *   lane that hangs stay in the queue, where other workers and cancellations can reach them.
 *
 * - A message that failed keeps its place in its lane until the failure is reported, without an actor. So a worker lets no more
 *   requests through to a destination that is down than it may have under way, however fast the answers and slow the reports.
 *
 * Plain synchronous data; it knows neither the queue nor the clock.
 */
import { Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"

const WINDOW_MIN = 16
const WINDOW_MAX = 500
/** For a new lane. */
export const WINDOW_FIRST = 64

interface Lane<A> {
  readonly id: DestinationId
  capacity: number
  /** The limit while traffic comes back to a destination that was down; infinite otherwise. */
  limit: number
  underWay: number
  /** Messages that failed, and whose failure is not reported yet. */
  unreported: number
  waiting: Array<A>
  window: number
  /** Messages that ended since the last call of `room`. */
  ended: number
  /** Whether the lane stands in the ring of lanes that can give a message now. */
  inRing: boolean
}

export interface WaitingRoom<A> {
  readonly offer: (lane: DestinationId, capacity: number, items: ReadonlyArray<A>, limit?: number | null) => void
  /** The next message of the next lane; parks until there is one. Its slot is taken until `ended`. */
  readonly take: Effect.Effect<A>
  /** `unreported`: its place stays taken until `reported`. */
  readonly ended: (lane: DestinationId, unreported?: boolean) => void
  readonly reported: (lane: DestinationId, count: number) => void
  /** Sets how many messages of the lane may be under way, within its capacity; null: no limit but the capacity. */
  readonly limit: (lane: DestinationId, limit: number | null) => void
  /** Removes and answers the lane's waiting messages that match. */
  readonly withdraw: (lane: DestinationId, matches: (item: A) => boolean) => ReadonlyArray<A>
  /** How many more messages of each known lane to claim now; 0 where there are enough. */
  readonly room: () => ReadonlyMap<DestinationId, number>
  /** How many messages could start at once, with an idle actor for each. */
  readonly startable: () => number
  /** Returns when a lane could use more messages than it holds; one such moment is remembered. */
  readonly wantsMore: Effect.Effect<void>
  /** Empties every lane and answers the messages. */
  readonly drain: () => ReadonlyArray<A>
}

/** `slots` is the number of actors. */
export const makeWaitingRoom = <A>(slots: number): WaitingRoom<A> => {
  const lanes = new Map<DestinationId, Lane<A>>()
  let ring: Array<Lane<A>> = []
  const parked: Array<(item: A) => void> = []
  let busy = 0
  let isShort = false
  let onShortage: (() => void) | null = null

  const free = (lane: Lane<A>) => Math.min(lane.capacity, lane.limit) - lane.underWay - lane.unreported
  const isEmpty = (lane: Lane<A>) => lane.underWay === 0 && lane.unreported <= 0 && lane.waiting.length === 0
  const mayGive = (lane: Lane<A>) => lane.underWay < slots - busy
  /** How many more messages of the lane could start now: each takes an idle actor and a part of the lane's share. */
  const open = (lane: Lane<A>) => Math.max(Math.min(free(lane), Math.ceil((slots - busy - lane.underWay) / 2)), 0)

  const enter = (lane: Lane<A>) => {
    if (lane.inRing || lane.waiting.length === 0 || free(lane) <= 0) return
    lane.inRing = true
    ring.push(lane)
  }

  /** Takes a lane out of the ring that has no message to give any more. */
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
    isShort = true
    onShortage?.()
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
          unreported: 0,
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
    ended: (id, unreported = false) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      lane.underWay -= 1
      busy -= 1
      lane.ended += 1
      if (unreported) {
        lane.unreported += 1
        leave(lane)
      }
      if (isEmpty(lane)) lanes.delete(id)
      else enter(lane)
      serve()
    },
    reported: (id, count) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      lane.unreported -= count
      if (isEmpty(lane)) lanes.delete(id)
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
      if (isEmpty(lane)) lanes.delete(id)
      return items
    },
    room: () => {
      const room = new Map<DestinationId, number>()
      for (const lane of lanes.values()) {
        lane.window = Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, 4 * lane.ended, lane.window >> 1))
        lane.ended = 0
        const wanted = lane.window + open(lane) - lane.waiting.length
        // Many tiny claims cost more than waiting until half a window is free.
        room.set(lane.id, wanted >= lane.window >> 1 ? wanted : 0)
      }
      return room
    },
    startable: () => [...lanes.values()].reduce((sum, lane) => sum + Math.min(open(lane), lane.waiting.length), 0),
    wantsMore: Effect.callback<void>((resume) => {
      const wake = () => {
        isShort = false
        onShortage = null
        resume(Effect.void)
      }
      if (isShort) return wake()
      onShortage = wake
      return Effect.sync(() => {
        if (onShortage === wake) onShortage = null
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
