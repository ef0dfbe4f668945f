/**
 * Constants of the domain as SQL, for `{{name}}` in a function's file. When a value changes, the functions that hold it are created again.
 */
import { DateTime } from "effect"
import { COMMAND_MAX, COMMANDS_BYTES } from "../../application/ports/CommandInbox.ts"
import { CLAIMED_BODY_MAX } from "../../application/ports/Queue.ts"
import { toRecorded } from "../../domain/circuit/facts.ts"
import { IN_FLIGHT_LAST, PERMIT_SPARE_MS, TIMEOUT_UNKNOWN_MS, widened } from "../../domain/circuit/policy.ts"
import type { MessageId } from "../../domain/ids.ts"

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** Holes in the JSON of a fact that a function writes. */
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
  commandMax: String(COMMAND_MAX),
  commandsAtOnce: String(COMMANDS_BYTES),
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
