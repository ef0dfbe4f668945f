/**
 * Who may have one of a worker's places (actors). They are shared by org first, then by lane, and a lane that answers quickly gets one at
 * once, however many lanes hang:
 *
 * - A lane is quick when its messages lately took less than `QUICK_MS`, and something ended within that time. All other lanes,
 *   new ones too, share three quarters of the places; the rest is for quick lanes. So what hangs stops nobody who answers.
 * - An org takes seven eighths of the idle places at most, and in lanes that are not quick three quarters of what such lanes
 *   may still have. So an org whose lanes all hang, also after they were quick, leaves places to every other org.
 * - A lane has at most as many messages under way as places are idle: a lane that hangs takes half at most.
 * - A new lane may try one message also when the lanes of its org that hang have used up its share, as long as more places are idle
 *   than such trials are under way: however many orgs' new lanes hang, some places are left for quick lanes.
 *
 * A message that failed keeps its place in its lane until the failure is reported, without an actor. So a worker lets no more
 * requests through to a destination that is down than it may have under way, however fast the answers and slow the reports.
 */

/** A lane is slow when its messages take longer. */
export const QUICK_MS = 1_000
/** A longer message counts as this long, so that one alone does not make a quick lane slow. */
const LONGEST_MS = 4 * QUICK_MS
/** How much of a lane's speed the last message is. */
const LAST = 0.2
/** How far ahead the messages of a slow lane are held. */
const AHEAD_MS = 2_000

/** What an org has under way. */
export interface OrgShare {
  underWay: number
  /** Of these, in lanes that are not quick. */
  careful: number
  /** Of these, started beyond the org's share because nobody knew the lane. */
  trials: number
}

/** What a lane may have and has under way, and how quick it is. */
export interface LaneShare {
  readonly org: OrgShare
  capacity: number
  /** The limit while traffic comes back to a destination that was down; infinite otherwise. */
  limit: number
  underWay: number
  /** Messages that failed, and whose failure is not reported yet. */
  unreported: number
  /** How long its messages took lately; null before the first has ended. */
  tookMs: number | null
  isQuick: boolean
  /** Whether its first message is under way as a trial. */
  isTried: boolean
  /** When a message ended or, with none under way, the first was started. */
  movedAt: number
}

export const newOrgShare = (): OrgShare => ({ underWay: 0, careful: 0, trials: 0 })

export const newLaneShare = <O extends OrgShare>(org: O, movedAt: number) => ({
  ...{ org, capacity: 0, limit: Number.POSITIVE_INFINITY, underWay: 0, unreported: 0 },
  ...{ tookMs: null, isQuick: false, isTried: false, movedAt }
})

export interface Places {
  readonly idle: () => number
  /** How many more messages of the lane it may have by itself, whoever else wants places. */
  readonly free: (lane: LaneShare) => number
  /** How many more messages of the lane could start now. Each takes an idle place and a part of every share it counts in. */
  readonly open: (lane: LaneShare) => number
  readonly begin: (lane: LaneShare) => void
  /** True when a place came back that others than quick lanes may have. */
  readonly end: (lane: LaneShare, tookMs: number) => boolean
  /** Looks whether the lane is still quick. */
  readonly judge: (lane: LaneShare) => void
  readonly isSlow: (lane: LaneShare) => boolean
  /** How many messages of a slow lane to hold: what can start now, and what will within two seconds. */
  readonly soon: (lane: LaneShare) => number
}

/** `count` is the number of actors; `now` a monotonic clock in milliseconds. */
export const makePlaces = (count: number, now: () => number): Places => {
  const carefulMax = count - (count >> 2)
  let busy = 0
  let careful = 0
  let trials = 0

  const free = (lane: LaneShare) => Math.min(lane.capacity, lane.limit) - lane.underWay - lane.unreported

  const open = (lane: LaneShare): number => {
    const { org } = lane
    const idle = count - busy
    const most = Math.min(free(lane), Math.ceil((idle - lane.underWay) / 2), Math.ceil((7 * idle - org.underWay) / 8))
    if (lane.isQuick || most <= 0) return Math.max(most, 0)
    const shared = Math.min(idle, carefulMax - careful)
    const share = Math.min(most, Math.ceil((shared - lane.underWay) / 2), Math.ceil((3 * shared - org.careful) / 4))
    return share > 0 ? share : mayTry(lane, idle) ? 1 : 0
  }

  const mayTry = ({ tookMs, underWay, org }: LaneShare, idle: number) =>
    tookMs === null && underWay === 0 && org.trials < idle / 4 && trials < idle

  const setQuick = (lane: LaneShare, isQuick: boolean) => {
    if (lane.isQuick === isQuick) return
    lane.isQuick = isQuick
    const change = isQuick ? -lane.underWay : lane.underWay
    lane.org.careful += change
    careful += change
  }

  const judge = (lane: LaneShare) => {
    const isMoving = lane.underWay === 0 || now() - lane.movedAt <= QUICK_MS
    setQuick(lane, isMoving && lane.tookMs !== null && lane.tookMs <= QUICK_MS)
  }

  return {
    idle: () => count - busy,
    free,
    open,
    begin: (lane) => {
      const { org } = lane
      if (lane.underWay === 0) lane.movedAt = now()
      if (!lane.isQuick) {
        const shared = Math.min(count - busy, carefulMax - careful)
        if (lane.underWay >= shared || org.careful >= 3 * shared) {
          lane.isTried = true
          org.trials += 1
          trials += 1
        }
        org.careful += 1
        careful += 1
      }
      lane.underWay += 1
      org.underWay += 1
      busy += 1
    },
    end: (lane, tookMs) => {
      const last = Math.min(tookMs, LONGEST_MS)
      lane.tookMs = lane.tookMs === null ? last : (1 - LAST) * lane.tookMs + LAST * last
      lane.movedAt = now()
      judge(lane)
      if (lane.isTried) {
        lane.org.trials -= 1
        trials -= 1
      }
      lane.isTried = false
      lane.underWay -= 1
      lane.org.underWay -= 1
      busy -= 1
      if (lane.isQuick) return false
      lane.org.careful -= 1
      careful -= 1
      return true
    },
    judge,
    isSlow: ({ tookMs, underWay, movedAt }) =>
      (tookMs !== null && tookMs > QUICK_MS) || (underWay > 0 && now() - movedAt > QUICK_MS),
    soon: (lane) => {
      const tookMs = Math.max(lane.tookMs ?? 0, lane.underWay > 0 ? now() - lane.movedAt : 0)
      return open(lane) + Math.floor((lane.underWay * AHEAD_MS) / tookMs)
    }
  }
}
