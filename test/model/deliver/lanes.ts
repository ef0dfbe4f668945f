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
import type { RateLimit } from "../../../src/domain/delivery/rateLimit.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { addToJournal, type Memory, type Tables } from "../Memory.ts"
import { freeLines } from "./lines.ts"
import { announceDueWork } from "./waiting.ts"

export interface LaneRow {
  readonly state: CircuitState
  readonly paused: boolean
  readonly rateLimit: RateLimit | null
  /** It hands out nothing before, for its rate limit or a deferral; in unix milliseconds, null before there was either. */
  readonly nextAt: number | null
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
  nextAt: null,
  blocks: false,
  permitMs: permitOf(TIMEOUT_UNKNOWN_MS)
}

export const laneOf = ({ laneRows }: Tables, lane: DestinationId): LaneRow => laneRows.get(lane) ?? untouched

export const changeLane = ({ laneRows }: Tables, lane: DestinationId, change: Partial<LaneRow>): void => {
  laneRows.set(lane, { ...(laneRows.get(lane) ?? untouched), ...change })
}

/** When the lane may be visited; null when only a command can open it. */
export const claimableAt = ({ state, paused, nextAt }: LaneRow): number | null =>
  paused || state.status === "HELD"
    ? null
    : Math.max(state.blockedUntil === null ? 0 : DateTime.toEpochMillis(state.blockedUntil), nextAt ?? 0)

/** The law of `rate_allowance.sql`, where it is explained. */
export const rateAllowance = ({ limit, periodMs }: RateLimit, nextAt: number | null, now: number) => {
  const window = Math.ceil(1_000 / periodMs) * periodMs
  const stepMs = (periodMs / limit) * (1 + Math.min(window / 20, 1_000) / window)
  const from = Math.max(nextAt ?? 0, now - 15)
  return { allowed: 1 + Math.floor(15 / stepMs) + Math.floor((now - from) / stepMs), from, stepMs }
}

/** How many messages the lane may hand out now, of `most`. */
export const allowance = (row: LaneRow, now: number, most: number): number => {
  const opensAt = claimableAt(row)
  if (opensAt === null || now < opensAt) return 0
  const { state, rateLimit, nextAt } = row
  const byRate = rateLimit === null ? most : rateAllowance(rateLimit, nextAt, now).allowed
  const byCircuit = state.status === "CLOSED" ? (state.inFlightMax ?? most) : 1
  return Math.min(byRate, byCircuit)
}

/** Messages of the lane were handed out. */
export const countAgainstRate = (tables: Tables, lane: DestinationId, now: number, count: number): void => {
  const { rateLimit, nextAt } = laneOf(tables, lane)
  if (rateLimit === null) return
  const { from, stepMs } = rateAllowance(rateLimit, nextAt, now)
  changeLane(tables, lane, { nextAt: from + count * stepMs })
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

/** What the settings of a destination mean for its lane. A limit that was changed counts from now on. */
export const copySettingsToLane = (memory: Memory["Service"], destination: Destination): void => {
  const { tables } = memory
  const { id, settings } = destination
  const { rateLimit, timeoutMs, onDeadLetter } = settings
  const { rateLimit: before } = laneOf(tables, id)
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
    ...(same ? {} : { nextAt: null })
  })
  if (!blocks) freeLines(memory, id)
  tables.hasNews = true
  announceDueWork(memory)
}

/** What waits for a destination that is gone must be able to come to its end. */
export const freeLane = (memory: Memory["Service"], lane: DestinationId): void => {
  const { tables } = memory
  changeLane(tables, lane, { rateLimit: null, nextAt: null, paused: false, blocks: false })
  freeLines(memory, lane)
  const { status, generation } = laneOf(tables, lane).state
  if (status !== "CLOSED") {
    const reset = { type: "CircuitReset", reason: "the destination was removed" } as const
    writeCircuit(memory, lane, [reset], { ...initialState, generation: generation + 1 })
  }
  tables.hasNews = true
  announceDueWork(memory)
}
