/** The facts that deserve an alert. Facts and their times decide, so a second reading of the log decides the same. */
import { DateTime } from "effect"
import type { CircuitFact } from "../circuit/facts.ts"
import type { MessageFact } from "../message/facts.ts"

export const alertingFacts = [
  "CircuitOpened",
  "CircuitClosed",
  "CircuitReset",
  "MessageFailed",
  "MessageDeadLettered",
  "DestinationDisabled",
  "DestinationEnabled",
  "ConditionBegan",
  "ConditionEnded",
  "CommandRefused"
] as const

const alerting: ReadonlySet<string> = new Set(alertingFacts)

export const mayAlert = (name: string): boolean => alerting.has(name.slice(0, name.indexOf("@")))

const RECENT_MS = 24 * 3_600_000

/**
 * A fact older than a day makes no alert. A second reading of the log then repeats no more than the idempotency keys of
 * a day drop.
 */
export const isRecent = (at: DateTime.Utc, now: DateTime.Utc): boolean =>
  DateTime.toEpochMillis(now) - DateTime.toEpochMillis(at) < RECENT_MS

/**
 * The news in the last fact of a circuit's history. Re-opening and holding are none; a reset is one only after an
 * opening.
 */
export const circuitNews = (history: ReadonlyArray<CircuitFact>): "opened" | "closed" | null => {
  switch (history.at(-1)?.type) {
    case "CircuitOpened":
      return "opened"
    case "CircuitClosed":
      return "closed"
    case "CircuitReset": {
      const before = history.slice(0, -1)
      const closed = before.findLastIndex(({ type }) => type === "CircuitClosed" || type === "CircuitReset")
      return before.slice(closed + 1).some(({ type }) => type === "CircuitOpened") ? "closed" : null
    }
    default:
      return null
  }
}

export const deadLetterErrorOf = (fact: MessageFact) =>
  fact.type === "MessageFailed" || fact.type === "MessageDeadLettered" ? fact.error : null

const QUIET_MS = 3_600_000

/** The first dead letter of a destination, or refused command of an org, makes an alert; the next hour makes none. */
export const mayAlertAgain = (alertedAt: DateTime.Utc | null, at: DateTime.Utc): boolean =>
  alertedAt === null || DateTime.toEpochMillis(at) - DateTime.toEpochMillis(alertedAt) >= QUIET_MS

export const quietSince = (at: DateTime.Utc): DateTime.Utc => DateTime.subtract(at, { milliseconds: QUIET_MS })
