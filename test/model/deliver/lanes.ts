/**
 * What each lane may hand out: the working copy of its circuit, whether it is paused, and its rate limit. A
 * lane nobody said anything about hands out everything.
 */
import { DateTime } from "effect"
import type { Destination } from "../../../src/application/ports/Destinations.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { toRecorded } from "../../../src/domain/circuit/facts.ts"
import { PERMIT_SPARE_MS, TIMEOUT_UNKNOWN_MS } from "../../../src/domain/circuit/policy.ts"
import { type CircuitState, initialState } from "../../../src/domain/circuit/state.ts"
import {
  HORIZON_MAX_MS,
  nextSlot,
  type RateLimit,
  type SlotsOfLane,
  slotsAfter,
  slotsFree,
  visitAt
} from "../../../src/domain/delivery/rateLimit.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { addToJournal, type Memory, type Tables } from "../Memory.ts"
import { freeLines } from "./lines.ts"
import { announceDueWork } from "./waiting.ts"

export interface LaneRow {
  readonly state: CircuitState
  readonly paused: boolean
  readonly rateLimit: RateLimit | null
  readonly slots: SlotsOfLane
  /** Of the rate limit or a deferral, in unix milliseconds; null before there was either. */
  readonly nextClaimAt: number | null
  /** A dead letter blocks its line. */
  readonly blocks: boolean
  /** How long a probe may take: longer than any request to this destination. */
  readonly permitMs: number
}

export const permitOf = (timeoutMs: number): number => timeoutMs + PERMIT_SPARE_MS

export const untouched: LaneRow = {
  state: initialState,
  paused: false,
  rateLimit: null,
  slots: { nextSlotAt: null, returned: [] },
  nextClaimAt: null,
  blocks: false,
  permitMs: permitOf(TIMEOUT_UNKNOWN_MS)
}

export const laneOf = ({ laneRows }: Tables, lane: DestinationId): LaneRow => laneRows.get(lane) ?? untouched

export const changeLane = ({ laneRows }: Tables, lane: DestinationId, change: Partial<LaneRow>): void => {
  laneRows.set(lane, { ...(laneRows.get(lane) ?? untouched), ...change })
}

/** When the lane may be visited; null when only a command can open it. */
export const claimableAt = ({ state, paused, nextClaimAt }: LaneRow): number | null =>
  paused || state.status === "HELD"
    ? null
    : Math.max(state.blockedUntil === null ? 0 : DateTime.toEpochMillis(state.blockedUntil), nextClaimAt ?? 0)

/** How many messages the lane may hand out now, of `most`. */
export const allowance = (row: LaneRow, now: number, most: number): number => {
  const opensAt = claimableAt(row)
  if (opensAt === null || now < opensAt) return 0
  const { state, rateLimit, slots } = row
  const byRate = rateLimit === null ? most : slotsFree(rateLimit, slots, now, most).length
  const byCircuit = state.status === "CLOSED" ? (state.inFlightMax ?? most) : 1
  return Math.min(byRate, byCircuit)
}

/** The slots of so many messages that were handed out; none without a rate limit. */
export const slotsFor = (tables: Tables, lane: DestinationId, now: number, count: number): ReadonlyArray<number> => {
  const { rateLimit, slots } = laneOf(tables, lane)
  if (rateLimit === null) return []
  const taken = slotsFree(rateLimit, slots, now, count)
  slotsTaken(tables, lane, rateLimit, taken.at(-1)!)
  return taken
}

const slotsTaken = (tables: Tables, lane: DestinationId, rate: RateLimit, last: number): void => {
  const { slots, nextClaimAt } = laneOf(tables, lane)
  const after = slotsAfter(rate, slots, last)
  const at = visitAt(rate, after.nextSlotAt!)
  changeLane(tables, lane, { slots: after, nextClaimAt: Math.max(nextClaimAt ?? at, at) })
}

export const takeSlot = (tables: Tables, lane: DestinationId, now: number, leadMs: number): number | null => {
  const { rateLimit, slots } = laneOf(tables, lane)
  if (rateLimit === null) return now
  const at = nextSlot(slots, now, now + leadMs)
  if (at !== null) slotsTaken(tables, lane, rateLimit, at)
  return at
}

export const returnSlots = (tables: Tables, lane: DestinationId, now: number, back: ReadonlyArray<number>): void => {
  const { rateLimit, slots } = laneOf(tables, lane)
  if (rateLimit === null) return
  const returned = [...new Set([...slots.returned, ...back])]
    .filter((at) => at > now && at < (slots.nextSlotAt ?? 0))
    .toSorted((a, b) => a - b)
  changeLane(tables, lane, { slots: { ...slots, returned } })
}

/** Facts and standing in one step. */
export const writeCircuit = (
  { tables, now }: Memory["Service"],
  lane: DestinationId,
  facts: ReadonlyArray<CircuitFact>,
  after: CircuitState,
  actor: string | null = null
): void => {
  addToJournal(tables, `circuit-${lane}`, facts.map(toRecorded), now(), actor)
  changeLane(tables, lane, { state: after })
}

/** What the settings of a destination mean for its lane. A limit that was changed counts from now on, after what is handed out. */
export const copySettingsToLane = (memory: Memory["Service"], destination: Destination): void => {
  const { tables, now } = memory
  const { id, settings } = destination
  const { rateLimit, timeoutMs, onDeadLetter } = settings
  const { rateLimit: before, slots } = laneOf(tables, id)
  const handedOut = DateTime.toEpochMillis(now()) + HORIZON_MAX_MS
  const same = before?.limit === rateLimit?.limit && before?.periodMs === rateLimit?.periodMs
  const blocks = onDeadLetter === "block"
  changeLane(tables, id, {
    rateLimit,
    paused:
      destination.paused ||
      destination.disabledReason !== null ||
      tables.orgs.get(destination.orgId)?.suspended != null,
    blocks,
    permitMs: permitOf(timeoutMs),
    ...(same
      ? {}
      : {
          nextClaimAt: null,
          slots: {
            nextSlotAt: slots.nextSlotAt === null ? null : Math.min(slots.nextSlotAt, handedOut),
            returned: []
          }
        })
  })
  if (!blocks) freeLines(memory, id)
  tables.hasNews = true
  announceDueWork(memory)
}

/** What waits for a destination that is gone must be able to come to its end. */
export const freeLane = (memory: Memory["Service"], lane: DestinationId): void => {
  const { tables } = memory
  changeLane(tables, lane, { rateLimit: null, nextClaimAt: null, paused: false, blocks: false })
  freeLines(memory, lane)
  const { status, generation } = laneOf(tables, lane).state
  if (status !== "CLOSED") {
    const reset = { type: "CircuitReset", reason: "the destination was removed" } as const
    writeCircuit(memory, lane, [reset], { ...initialState, generation: generation + 1 })
  }
  tables.hasNews = true
  announceDueWork(memory)
}
