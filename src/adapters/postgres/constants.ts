/**
 * What the domain decides and functions of the database need to know, as SQL. A function's file says `{{name}}` where the
 * value goes; when a value changes, the functions that hold it are created again.
 */
import { DateTime } from "effect"
import { CLAIMED_BODY_MAX } from "../../application/ports/Queue.ts"
import { toRecorded } from "../../domain/circuit/facts.ts"
import { IN_FLIGHT_LAST, PERMIT_SPARE_MS, TIMEOUT_UNKNOWN_MS, widened } from "../../domain/circuit/policy.ts"
import {
  HORIZON_MAX_MS,
  HORIZON_MIN_MS,
  NEXT_WITHIN_MS,
  SLOTS_AHEAD,
  SPREAD,
  SPREAD_MAX_MS,
  WINDOW_MIN_MS
} from "../../domain/delivery/rateLimit.ts"
import type { MessageId } from "../../domain/ids.ts"

/** A lane that gives so many in one visit has more soon. */
const BUSY_FROM = 4
/** How long such a lane is looked at without a message before it goes to sleep. */
const DOZE_MS = 250
/** The same, while each look at a lane walks over all that it was before: more blocks a lane than it takes to find one. */
const LONG_DOZE_MS = 10_000
const LANE_BLOCKS = 6
/** More blocks of its index than a claim needs to find its first message: it walked past some that are gone, a hundred a block. */
const LOOK_BLOCKS = 8
/** The same of a line whose head is looked for, and of its table: some fifty a block. */
const LINE_BLOCKS = 4
/** How long after it is due a message that is accepted now has been written at the latest, mostly. */
const WRITTEN_WITHIN_MS = 250

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** Of a fact that a function writes: its JSON as the codec writes it, with holes for what only the function knows. */
const hole = { id: "00000000-0000-0000-0000-000000000000", time: "1970-01-01T00:00:00.000Z" }
const probed = toRecorded({
  type: "CircuitProbed",
  probe: hole.id as MessageId,
  expiresAt: DateTime.makeUnsafe(hole.time)
})
const removed = toRecorded({ type: "CircuitReset", reason: "the destination was removed" })

const constants: Readonly<Record<string, string>> = {
  holeId: text(hole.id),
  holeTime: text(hole.time),
  probedName: text(probed.name),
  probedData: text(probed.data),
  removedName: text(removed.name),
  removedData: text(removed.data),
  permitSpareMs: String(PERMIT_SPARE_MS),
  timeoutUnknownMs: String(TIMEOUT_UNKNOWN_MS),
  inFlightLast: String(IN_FLIGHT_LAST),
  inFlightFactor: String(widened(1)),
  slotsAhead: String(SLOTS_AHEAD),
  horizonMinMs: String(HORIZON_MIN_MS),
  horizonMaxMs: String(HORIZON_MAX_MS),
  nextWithinMs: String(NEXT_WITHIN_MS),
  spread: String(SPREAD),
  spreadMaxMs: String(SPREAD_MAX_MS),
  windowMinMs: String(WINDOW_MIN_MS),
  busyFrom: String(BUSY_FROM),
  dozeMs: String(DOZE_MS),
  longDozeMs: String(LONG_DOZE_MS),
  laneBlocks: String(LANE_BLOCKS),
  lookBlocks: String(LOOK_BLOCKS),
  lineBlocks: String(LINE_BLOCKS),
  writtenWithinMs: String(WRITTEN_WITHIN_MS),
  claimedBodyMax: String(CLAIMED_BODY_MAX)
}

/** Fails on a name that stands for nothing. */
export const filled = (sql: string): string =>
  sql.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = constants[name]
    if (value === undefined) throw new Error(`{{${name}}} is no constant of the database's functions`)
    return value
  })

export const constantNames = Object.keys(constants)
