/**
 * The claimed messages that wait in this worker, and its attempts under way, in two pools.
 *
 * - An attempt has a place in the quick pool for its first second, then moves to the slow pool, eight times as large.
 *   While lanes wait for a place it moves after a quarter of a second.
 * - A lane is slow while it has an attempt in the slow pool, or when its last one took longer than a second. It
 *   starts in the slow pool, so hanging destinations take no place from those that answer.
 * - An org has at most half of the slow pool and seven eighths of the quick pool (three quarters at destinations that
 *   have never answered), each counted from what others leave idle: however many orgs hang, both pools have places
 *   left.
 * - A lane has no more attempts under way than its destination allows, and 2 until its destination has first
 *   answered. Each of these 2 takes a place in both pools, so that it can move.
 * - A failure counts as under way until its circuit was told: a destination that is down gets no more requests than
 *   may be under way, however slow the reports are.
 *
 * Orgs take turns, and within each its lanes. A quick lane holds messages in advance by its speed; for any other lane
 * only messages that can start are claimed, and the rest goes back when it turns slow. Plain synchronous data.
 */
import { Effect, Latch } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"

const QUICK_MS = 1_000
const WANTED_MS = 250
const SLOW_FACTOR = 8
/**
 * For a destination that has not answered: attempts under way, and the multiple of the idle quick places that its org
 * may have.
 */
const TRIED_MAX = 2
const TRIED_PART = 3

const WINDOW_MIN = 16
const WINDOW_MAX = 500
const HELD_PER_PLACE = 4
const HELD_MIN = 1_000
/** The time that a lane without messages is remembered, and the interval of looking for such lanes. */
const REMEMBERED_MS = 60_000
const FORGET_EVERY_MS = 5_000

interface Pool<A> {
  readonly size: number
  /** The multiple of the pool's idle places that an org may have. */
  readonly part: number
  used: number
  /** Orgs with lanes that wait, the next one first. */
  ring: Array<Share<A>>
}

export interface Share<A> {
  used: number
  ring: Array<Lane<A>>
  inRing: boolean
}

export interface Org<A> {
  readonly id: OrgId
  readonly quick: Share<A>
  readonly slow: Share<A>
  waiting: number
}

interface Lane<A> {
  readonly id: DestinationId
  readonly org: Org<A>
  waiting: Array<A>
  /** The share whose ring holds it; null when no message may start. */
  share: Share<A> | null
  capacity: number
  /** Finite while traffic comes back to a destination that was down. */
  limit: number
  underWay: number
  inSlow: number
  unreported: number
  hasAnswered: boolean
  /** The last attempt, or one under way, took longer than a second. */
  isLate: boolean
  isRateLimited: boolean
  window: number
  ended: number
  movedAt: number
}

export interface Attempt<A> {
  readonly item: A
  readonly lane: Lane<A>
  readonly startedAt: number
  inQuick: boolean
  inSlow: boolean
}

export interface Offer<A> {
  readonly lane: DestinationId
  readonly org: OrgId
  readonly capacity: number
  readonly limit: number | null
  readonly isRateLimited: boolean
  readonly items: ReadonlyArray<A>
}

interface Ending {
  readonly hasAnswered: boolean
  /** Counts as under way until `reported`. */
  readonly isUnreported: boolean
}

export interface Room {
  /** The messages to claim of each known lane; 0 where there are enough. */
  readonly lanes: ReadonlyMap<DestinationId, number>
  /** Orgs at their bound: only their lanes in `lanes` may give. */
  readonly fullOrgs: ReadonlySet<OrgId>
  readonly left: number
}

export interface Pools<A> {
  readonly offer: (offer: Offer<A>) => void
  readonly ended: (attempt: Attempt<A>, ending: Ending) => void
  readonly reported: (lane: DestinationId, count: number) => void
  /** Limits the lane's attempts under way, within its capacity; null: only by the capacity. */
  readonly limit: (lane: DestinationId, limit: number | null) => void
  readonly withdraw: (lane: DestinationId, matches: (item: A) => boolean) => ReadonlyArray<A>
  readonly room: () => Room
  /** Moves attempts to the slow pool. Removes messages of lanes that turned slow and can't start soon. */
  readonly sweep: () => ReadonlyArray<A>
  readonly hasQuick: Effect.Effect<void>
  /** Returns when a lane could use more messages; one such moment is remembered. */
  readonly wantsMore: Effect.Effect<void>
  readonly drain: () => ReadonlyArray<A>
}

const makeSignal = () => {
  const latch = Latch.makeUnsafe(false)
  return {
    on: () => void latch.openUnsafe(),
    wait: Effect.andThen(
      latch.await,
      Effect.sync(() => void latch.closeUnsafe())
    )
  }
}

const shareOf = <A>(): Share<A> => ({ used: 0, ring: [], inRing: false })

const roomIn = <A>({ size, used, ...pool }: Pool<A>, share: Share<A>, part = pool.part): number => {
  const idle = size - used
  return Math.max(0, Math.min(idle, Math.ceil((part * idle - share.used) / (part + 1))))
}

const isSlow = <A>({ isLate, inSlow }: Lane<A>) => isLate || inSlow > 0

const free = <A>({ capacity, limit, hasAnswered, underWay, unreported }: Lane<A>) =>
  Math.min(capacity, limit, hasAnswered ? Number.POSITIVE_INFINITY : TRIED_MAX) - underWay - unreported

/**
 * `size`: of the quick pool; `now`: a monotonic clock in ms; `start` gets each attempt when its place is taken, until
 * `ended`.
 */
export const makePools = <A>(size: number, now: () => number, start: (attempt: Attempt<A>) => void): Pools<A> => {
  const quick: Pool<A> = { size, part: 7, used: 0, ring: [] }
  const slow: Pool<A> = { size: size * SLOW_FACTOR, part: 1, used: 0, ring: [] }
  const inQuick = new Set<Attempt<A>>()
  const hasQuick = Latch.makeUnsafe(false)
  const lanes = new Map<DestinationId, Lane<A>>()
  const orgs = new Map<OrgId, Org<A>>()
  const heldMax = Math.max(size * HELD_PER_PLACE, HELD_MIN)
  let held = 0
  let forgotAt = now()
  const shortage = makeSignal()

  const take = (pool: Pool<A>, share: Share<A>, count: 1 | -1) => {
    pool.used += count
    share.used += count
  }

  /** Puts a lane into the ring where its next message may start, or into none. */
  const line = (lane: Lane<A>) => {
    const { org, waiting } = lane
    const share = waiting.length === 0 || free(lane) <= 0 ? null : isSlow(lane) ? org.slow : org.quick
    if (share === lane.share) return
    if (lane.share !== null) lane.share.ring.splice(lane.share.ring.indexOf(lane), 1)
    lane.share = share
    if (share === null) return
    share.ring.push(lane)
    if (share.inRing) return
    share.inRing = true
    ;(share === org.slow ? slow : quick).ring.push(share)
  }

  const begin = (lane: Lane<A>, pool: Pool<A>): Attempt<A> => {
    const { org } = lane
    const item = lane.waiting.shift()!
    org.waiting -= 1
    held -= 1
    const attempt = {
      item,
      lane,
      startedAt: now(),
      inQuick: pool === quick,
      inSlow: pool === slow || !lane.hasAnswered
    }
    if (attempt.inSlow) take(slow, org.slow, 1)
    if (attempt.inQuick) {
      take(quick, org.quick, 1)
      inQuick.add(attempt)
      hasQuick.openUnsafe()
    } else lane.inSlow += 1
    lane.underWay += 1
    lane.share = null
    line(lane)
    if (lane.waiting.length <= lane.window >> 1) shortage.on()
    return attempt
  }

  const roomToTry = (org: Org<A>) => Math.min(roomIn(quick, org.quick, TRIED_PART), roomIn(slow, org.slow))

  const nextIn = (pool: Pool<A>): Attempt<A> | null => {
    for (let orgsLeft = pool.ring.length; orgsLeft > 0 && pool.used < pool.size; orgsLeft--) {
      const share = pool.ring.shift()!
      let attempt: Attempt<A> | null = null
      for (let left = roomIn(pool, share) > 0 ? share.ring.length : 0; left > 0 && attempt === null; left--) {
        const lane = share.ring.shift()!
        if (pool === slow || lane.hasAnswered || roomToTry(lane.org) > 0) attempt = begin(lane, pool)
        else share.ring.push(lane)
      }
      share.inRing = share.ring.length > 0
      if (share.inRing) pool.ring.push(share)
      if (attempt !== null) return attempt
    }
    return null
  }

  const serve = () => {
    for (;;) {
      const attempt = nextIn(quick) ?? nextIn(slow)
      if (attempt === null) return
      start(attempt)
    }
  }

  const laneOf = (id: DestinationId, orgId: OrgId): Lane<A> => {
    const known = lanes.get(id)
    if (known !== undefined) return known
    const org = orgs.get(orgId) ?? { id: orgId, quick: shareOf<A>(), slow: shareOf<A>(), waiting: 0 }
    orgs.set(orgId, org)
    const lane: Lane<A> = {
      ...{ id, org, waiting: [], share: null, capacity: 0, limit: Number.POSITIVE_INFINITY },
      ...{ underWay: 0, inSlow: 0, unreported: 0, hasAnswered: false, isLate: false, isRateLimited: false },
      ...{ window: WINDOW_MIN, ended: 0, movedAt: now() }
    }
    lanes.set(id, lane)
    return lane
  }

  const isEmpty = (lane: Lane<A>) => lane.underWay === 0 && lane.unreported <= 0 && lane.waiting.length === 0

  const forgetIdle = () => {
    if (now() - forgotAt < FORGET_EVERY_MS) return
    forgotAt = now()
    for (const lane of lanes.values()) if (isEmpty(lane) && now() - lane.movedAt > REMEMBERED_MS) lanes.delete(lane.id)
    const used = new Set([...lanes.values()].map(({ org }) => org))
    for (const org of orgs.values()) if (!used.has(org)) orgs.delete(org.id)
  }

  const withdraw = (lane: Lane<A>, matches: (item: A, index: number) => boolean): ReadonlyArray<A> => {
    const items = lane.waiting.filter(matches)
    if (items.length === 0) return items
    lane.waiting = lane.waiting.filter((item, index) => !matches(item, index))
    lane.org.waiting -= items.length
    held -= items.length
    line(lane)
    return items
  }

  /** True for an org that may start nothing at destinations without an answer, or holds all that may be claimed. */
  const isFull = (org: Org<A>) => roomIn(slow, org.slow) === 0 || org.waiting >= Math.max(WINDOW_MIN, heldMax - held)

  const open = (lane: Lane<A>): number => {
    const { org } = lane
    const inPools = isSlow(lane) ? roomIn(slow, org.slow) : lane.hasAnswered ? roomIn(quick, org.quick) : roomToTry(org)
    return Math.max(0, Math.min(free(lane), inPools))
  }

  const roomOf = (lane: Lane<A>): number => {
    const { waiting, hasAnswered, isRateLimited, org } = lane
    lane.window = Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, 4 * lane.ended, lane.window >> 1))
    lane.ended = 0
    if (isSlow(lane) || isRateLimited || !hasAnswered) return Math.max(0, open(lane) - waiting.length)
    if (isFull(org)) return waiting.length === 0 ? WINDOW_MIN : 0
    const wanted = lane.window + open(lane) - waiting.length
    // Waits for half a window: many tiny claims cost more.
    return wanted >= lane.window >> 1 ? wanted : 0
  }

  return {
    offer: ({ lane: id, org, capacity, limit, isRateLimited, items }) => {
      const lane = laneOf(id, org)
      lane.capacity = capacity
      lane.limit = limit ?? Number.POSITIVE_INFINITY
      lane.isRateLimited = isRateLimited
      lane.waiting.push(...items)
      lane.org.waiting += items.length
      held += items.length
      line(lane)
      serve()
    },
    ended: (attempt, { hasAnswered, isUnreported }) => {
      const { lane } = attempt
      if (attempt.inSlow) take(slow, lane.org.slow, -1)
      if (attempt.inQuick) take(quick, lane.org.quick, -1)
      else lane.inSlow -= 1
      inQuick.delete(attempt)
      lane.underWay -= 1
      lane.ended += 1
      lane.movedAt = now()
      lane.isLate = lane.movedAt - attempt.startedAt > QUICK_MS
      lane.hasAnswered ||= hasAnswered
      if (isUnreported) lane.unreported += 1
      line(lane)
      if (attempt.inSlow || lane.isRateLimited) shortage.on()
      serve()
    },
    reported: (id, count) => {
      const lane = lanes.get(id)
      if (lane === undefined) return
      lane.unreported -= count
      line(lane)
      serve()
    },
    limit: (id, limit) => {
      const lane = lanes.get(id)
      if (lane !== undefined) {
        lane.limit = limit ?? Number.POSITIVE_INFINITY
        line(lane)
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
      const room = new Map<DestinationId, number>()
      for (const lane of lanes.values()) {
        // An idle lane gives as much as a new one, unless it is slow or its org is full.
        if (!isEmpty(lane) || isSlow(lane) || isFull(lane.org)) room.set(lane.id, roomOf(lane))
      }
      const fullOrgs = new Set([...orgs.values()].filter(isFull).map(({ id }) => id))
      return { lanes: room, fullOrgs, left: Math.max(0, heldMax - held) }
    },
    sweep: () => {
      const age = quick.ring.length === 0 ? QUICK_MS : WANTED_MS
      const turned = new Set<Lane<A>>()
      for (const attempt of inQuick) {
        const tookMs = now() - attempt.startedAt
        if (tookMs <= age) break
        const { lane } = attempt
        lane.isLate ||= tookMs > QUICK_MS
        turned.add(lane)
        if (!attempt.inSlow && roomIn(slow, lane.org.slow) === 0) continue
        inQuick.delete(attempt)
        take(quick, lane.org.quick, -1)
        if (!attempt.inSlow) take(slow, lane.org.slow, 1)
        attempt.inQuick = false
        attempt.inSlow = true
        lane.inSlow += 1
      }
      if (inQuick.size === 0) hasQuick.closeUnsafe()
      const surplus: Array<A> = []
      for (const lane of turned) {
        line(lane)
        if (!lane.isLate) continue
        const soon = open(lane)
        surplus.push(...withdraw(lane, (_, index) => index >= soon))
      }
      if (turned.size > 0) shortage.on()
      serve()
      return surplus
    },
    hasQuick: hasQuick.await,
    wantsMore: shortage.wait,
    drain: () => [...lanes.values()].flatMap((lane) => withdraw(lane, () => true))
  }
}
