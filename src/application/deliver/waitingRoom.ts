/**
 * The messages that this process has claimed and not yet started, and which of them starts next. Orgs take turns, and within each its
 * lanes; how many each may have under way is for `places.ts` to say.
 *
 * What is held is bounded. A quick lane is kept full in advance, as its speed asks for. Of a slow lane no more is held than can
 * start within two seconds: the rest goes back to the queue, where other workers and cancellations reach it. An org that holds
 * half of what is left of `HELD_PER_SLOT` messages a place is full: it gets more only for a quick lane that has run out.
 *
 * A message that has a slot of a rate limit waits here until its attempt may begin. Of a lane with such messages no more is held
 * than its places can start while slots are handed out ahead: other workers use the slots that this one can't.
 *
 * Plain synchronous data; it knows neither the queue nor a clock but the one it is given.
 */
import { Effect } from "effect"
import { HORIZON_MAX_MS } from "../../domain/delivery/rateLimit.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { type LaneShare, makePlaces, newLaneShare, newOrgShare, type OrgShare } from "./places.ts"

const WINDOW_MIN = 16
const WINDOW_MAX = 500
/** For a new lane. */
export const WINDOW_FIRST = 64
const HELD_PER_SLOT = 4
/** How long the speed of a lane that has no messages is remembered, and of how many lanes about. */
const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 10_000
/** How often what is remembered is looked through. */
const FORGET_EVERY_MS = 5_000

interface Org<A> extends OrgShare {
  readonly id: OrgId
  waiting: number
  /** The lanes that have messages and room in their own capacity. */
  ring: Array<Lane<A>>
  inRing: boolean
}

interface Lane<A> extends LaneShare {
  readonly id: DestinationId
  readonly org: Org<A>
  waiting: Array<A>
  window: number
  /** Messages that ended since the last call of `room`. */
  ended: number
  inRing: boolean
  /** Its messages wait for slots of a rate limit. */
  isPaced: boolean
}

/** Wakes the one who waits; one call that nobody waited for is remembered. */
const makeSignal = () => {
  let isOn = false
  let onSignal: (() => void) | null = null
  return {
    on: () => {
      isOn = true
      onSignal?.()
    },
    wait: Effect.callback<void>((resume) => {
      const wake = () => {
        isOn = false
        onSignal = null
        resume(Effect.void)
      }
      if (isOn) return wake()
      onSignal = wake
      return Effect.sync(() => {
        if (onSignal === wake) onSignal = null
      })
    })
  }
}

export interface WaitingRoom<A> {
  readonly offer: (
    lane: DestinationId,
    org: OrgId,
    capacity: number,
    items: ReadonlyArray<A>,
    limit?: number | null
  ) => void
  /** The next message of the next lane; parks until there is one. Its slot is taken until `ended`. */
  readonly take: Effect.Effect<A>
  /** `unreported`: its place in the lane stays taken until `reported`. */
  readonly ended: (lane: DestinationId, tookMs: number, unreported?: boolean) => void
  readonly reported: (lane: DestinationId, count: number) => void
  /** Sets how many messages of the lane may be under way, within its capacity; null: no limit but the capacity. */
  readonly limit: (lane: DestinationId, limit: number | null) => void
  /** Removes and answers the lane's waiting messages that match. */
  readonly withdraw: (lane: DestinationId, matches: (item: A) => boolean) => ReadonlyArray<A>
  /** What to claim now. */
  readonly room: () => Room
  /** Removes what slow lanes hold beyond what they can start soon; parks until `room` finds some. */
  readonly surplus: Effect.Effect<ReadonlyArray<A>>
  /** Lets go what may begin by now. When the next lane may begin, in milliseconds of the clock; null when none waits for that. */
  readonly begin: () => number | null
  /** Returns when a lane waits for a moment to begin; one such moment is remembered. */
  readonly wantsToBegin: Effect.Effect<void>
  /** How many messages could start at once, with an idle actor for each. */
  readonly startable: () => number
  /** Returns when a lane could use more messages than it holds; one such moment is remembered. */
  readonly wantsMore: Effect.Effect<void>
  /** Empties every lane and answers the messages. */
  readonly drain: () => ReadonlyArray<A>
}

export interface Room {
  /** How many more messages of each known lane to claim; 0 where there are enough. */
  readonly lanes: ReadonlyMap<DestinationId, number>
  /** Orgs that hold their part: nothing of their lanes that are not in `lanes`. */
  readonly fullOrgs: ReadonlySet<OrgId>
  /** Nothing at all is to be claimed. */
  readonly isFull: boolean
}

/** `slots` is the number of actors; `now` a monotonic clock in milliseconds; `beginsAt` when an item may begin; null: at once. */
export const makeWaitingRoom = <A>(
  slots: number,
  now: () => number,
  beginsAt: (item: A) => number | null = () => null
): WaitingRoom<A> => {
  const { idle, free, open, begin, end, judge, isSlow, soon } = makePlaces(slots, now)
  const lanes = new Map<DestinationId, Lane<A>>()
  const orgs = new Map<OrgId, Org<A>>()
  let ring: Array<Org<A>> = []
  /** Lanes whose first message may not begin yet. */
  const early = new Set<Lane<A>>()
  const someAreEarly = makeSignal()
  const parked: Array<(item: A) => void> = []
  const heldMax = Math.max(slots * HELD_PER_SLOT, WINDOW_MAX)
  let held = 0
  let forgotAt = now()
  const shortage = makeSignal()
  let onSurplus: ((items: ReadonlyArray<A>) => void) | null = null

  const isEmpty = (lane: Lane<A>) => lane.underWay === 0 && lane.unreported <= 0 && lane.waiting.length === 0

  const mayBegin = (item: A) => {
    const at = beginsAt(item)
    return at === null || at <= now()
  }

  /** How many of its messages may begin now. Those that have slots begin one after the other. */
  const beginning = ({ waiting, isPaced }: Lane<A>) =>
    isPaced ? Number(waiting.length > 0 && mayBegin(waiting[0]!)) : waiting.length

  const enter = (lane: Lane<A>) => {
    if (lane.inRing || lane.waiting.length === 0 || free(lane) <= 0) return
    if (!mayBegin(lane.waiting[0]!)) {
      early.add(lane)
      someAreEarly.on()
      return
    }
    lane.inRing = true
    lane.org.ring.push(lane)
    if (lane.org.inRing) return
    lane.org.inRing = true
    ring.push(lane.org)
  }

  /** Takes a lane out of the ring that has no message to give any more. */
  const leave = (lane: Lane<A>) => {
    if (!lane.inRing || (lane.waiting.length > 0 && free(lane) > 0 && mayBegin(lane.waiting[0]!))) return
    lane.inRing = false
    lane.org.ring.splice(lane.org.ring.indexOf(lane), 1)
  }

  const nextOf = (org: Org<A>): A | null => {
    for (let left = org.ring.length; left > 0; left--) {
      const lane = org.ring.shift()!
      if (open(lane) <= 0) {
        org.ring.push(lane)
        continue
      }
      lane.inRing = false
      const item = lane.waiting.shift()!
      org.waiting -= 1
      held -= 1
      begin(lane)
      enter(lane)
      if (lane.waiting.length <= lane.window >> 1) shortage.on()
      return item
    }
    return null
  }

  const next = (): A | null => {
    if (idle() <= 0) return null
    for (let left = ring.length; left > 0; left--) {
      const org = ring.shift()!
      const item = nextOf(org)
      org.inRing = org.ring.length > 0
      if (org.inRing) ring.push(org)
      if (item !== null) return item
    }
    return null
  }

  const serve = () => {
    while (parked.length > 0) {
      const item = next()
      if (item === null) return
      // The actor that parked last has the warmest caches.
      parked.pop()!(item)
    }
  }

  const laneOf = (id: DestinationId, orgId: OrgId): Lane<A> => {
    const known = lanes.get(id)
    if (known !== undefined) return known
    let org = orgs.get(orgId)
    if (org === undefined) {
      org = { ...newOrgShare(), id: orgId, waiting: 0, ring: [], inRing: false }
      orgs.set(orgId, org)
    }
    const lane: Lane<A> = {
      ...newLaneShare(org, now()),
      ...{ id, waiting: [], window: WINDOW_FIRST, ended: 0, inRing: false, isPaced: false }
    }
    lanes.set(id, lane)
    return lane
  }

  const forgetIdle = () => {
    if (now() - forgotAt < FORGET_EVERY_MS) return
    forgotAt = now()
    let beyond = lanes.size - REMEMBERED_MAX
    for (const lane of lanes.values()) {
      if (!isEmpty(lane) || (beyond <= 0 && now() - lane.movedAt <= REMEMBERED_MS)) continue
      lanes.delete(lane.id)
      beyond -= 1
    }
    const used = new Set([...lanes.values()].map(({ org }) => org))
    for (const org of orgs.values()) if (!used.has(org)) orgs.delete(org.id)
  }

  const withdraw = (lane: Lane<A>, matches: (item: A) => boolean): ReadonlyArray<A> => {
    const items = lane.waiting.filter(matches)
    if (items.length === 0) return items
    lane.waiting = lane.waiting.filter((item) => !matches(item))
    lane.org.waiting -= items.length
    held -= items.length
    leave(lane)
    enter(lane)
    return items
  }

  const isFull = ({ waiting }: Org<A>) => waiting >= Math.max(WINDOW_MIN, heldMax - held)

  const withdrawSurplus = (lane: Lane<A>): ReadonlyArray<A> => {
    if (lane.waiting.length === 0 || !isSlow(lane)) return []
    const keep = new Set(lane.waiting.slice(0, soon(lane)))
    return withdraw(lane, (item) => !keep.has(item))
  }

  /**
   * How many messages of the lane its places start in time for slots that follow each other: those that are free, and what ends in
   * a quarter of the time that slots are handed out ahead. Places that were taken one after another end one after another.
   */
  const inTime = (lane: Lane<A>, tookMs: number) =>
    open(lane) + Math.ceil((lane.underWay * HORIZON_MAX_MS) / 4 / Math.max(tookMs, 1))

  const roomOf = (lane: Lane<A>): number => {
    lane.window = Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, 4 * lane.ended, lane.window >> 1))
    lane.ended = 0
    if (isFull(lane.org))
      return lane.isQuick && lane.waiting.length === 0 && lane.org.waiting < heldMax ? WINDOW_FIRST : 0
    if (isSlow(lane)) return Math.max(soon(lane) - lane.waiting.length, 0)
    if (lane.isPaced && lane.tookMs !== null) return Math.max(inTime(lane, lane.tookMs) - lane.waiting.length, 0)
    const wanted = lane.window + open(lane) - lane.waiting.length
    // Many tiny claims cost more than waiting until half a window is free.
    return wanted >= lane.window >> 1 ? wanted : 0
  }

  return {
    offer: (id, org, capacity, items, limit = null) => {
      const lane = laneOf(id, org)
      lane.capacity = capacity
      lane.limit = limit ?? Number.POSITIVE_INFINITY
      lane.isPaced = items.length > 0 && beginsAt(items[0]!) !== null
      lane.waiting.push(...items)
      lane.org.waiting += items.length
      held += items.length
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
    ended: (id, tookMs, unreported = false) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      if (end(lane, tookMs)) shortage.on()
      lane.ended += 1
      if (unreported) {
        lane.unreported += 1
        leave(lane)
      }
      enter(lane)
      serve()
    },
    reported: (id, count) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      lane.unreported -= count
      enter(lane)
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
      shortage.on()
    },
    withdraw: (id, matches) => {
      const lane = lanes.get(id)
      return lane === undefined ? [] : withdraw(lane, matches)
    },
    room: () => {
      forgetIdle()
      for (const lane of lanes.values()) judge(lane)
      if (onSurplus !== null) {
        const items = [...lanes.values()].flatMap(withdrawSurplus)
        if (items.length > 0) onSurplus(items)
      }
      const room = new Map<DestinationId, number>()
      for (const lane of lanes.values()) {
        // An idle lane gives what a new one gives, unless it is slow or its org is full.
        if (!isEmpty(lane) || lane.isPaced || isSlow(lane) || isFull(lane.org)) room.set(lane.id, roomOf(lane))
      }
      const fullOrgs = new Set([...orgs.values()].filter(isFull).map(({ id }) => id))
      return { lanes: room, fullOrgs, isFull: held >= 2 * heldMax }
    },
    surplus: Effect.callback<ReadonlyArray<A>>((resume) => {
      onSurplus = (items) => {
        onSurplus = null
        resume(Effect.succeed(items))
      }
      return Effect.sync(() => {
        onSurplus = null
      })
    }),
    begin: () => {
      let next: number | null = null
      for (const lane of early) {
        const at = lane.waiting.length === 0 || free(lane) <= 0 ? null : beginsAt(lane.waiting[0]!)
        if (at !== null && at > now()) next = next === null ? at : Math.min(next, at)
        else {
          early.delete(lane)
          enter(lane)
        }
      }
      serve()
      return next
    },
    wantsToBegin: someAreEarly.wait,
    startable: () =>
      Math.min(
        idle(),
        [...lanes.values()].reduce((sum, lane) => sum + Math.min(open(lane), beginning(lane)), 0)
      ),
    wantsMore: shortage.wait,
    drain: () => {
      const items = [...lanes.values()].flatMap(({ waiting }) => waiting)
      for (const lane of lanes.values()) {
        lane.waiting = []
        lane.inRing = false
        lane.org.waiting = 0
        lane.org.ring = []
        lane.org.inRing = false
      }
      held = 0
      ring = []
      early.clear()
      return items
    }
  }
}
