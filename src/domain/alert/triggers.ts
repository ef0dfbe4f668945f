/**
 * Which facts deserve an alert. The facts and their times decide, so a second reading of the log decides the same.
 */
import { DateTime } from "effect"
import type { CircuitFact } from "../circuit/facts.ts"
import type { MessageFact } from "../message/facts.ts"

/** Types of the facts that can deserve an alert. */
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

/** `name` is `Type@version`. */
export const mayAlert = (name: string): boolean => alerting.has(name.slice(0, name.indexOf("@")))

const RECENT_MS = 24 * 3_600_000

/**
 * A fact older than a day makes no alert. When the log has to be read again from its beginning, this bounds the alerts
 * that are sent once more: the idempotency keys of a day are still known (see retention).
 */
export const isRecent = (at: DateTime.Utc, now: DateTime.Utc): boolean =>
  DateTime.toEpochMillis(now) - DateTime.toEpochMillis(at) < RECENT_MS

/**
 * Whether the last fact of a circuit's history opens or closes the circuit for people. A circuit that re-opens was never
 * closed, and a person who holds a circuit knows it: neither is news. The reset of a hold is no news either, unless the
 * circuit had opened before it.
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

/** The error of a fact that makes its message a dead letter; null of any other fact. */
export const deadLetterErrorOf = (fact: MessageFact) =>
  fact.type === "MessageFailed" || fact.type === "MessageDeadLettered" ? fact.error : null

const QUIET_MS = 3_600_000

/** Whether a dead letter of a destination, or a refused command of an org, makes an alert: the first does, and then no other for an hour. */
export const mayAlertAgain = (alertedAt: DateTime.Utc | null, at: DateTime.Utc): boolean =>
  alertedAt === null || DateTime.toEpochMillis(at) - DateTime.toEpochMillis(alertedAt) >= QUIET_MS

/** An alert before this time holds back no alert at `at`. */
export const quietSince = (at: DateTime.Utc): DateTime.Utc => DateTime.subtract(at, { milliseconds: QUIET_MS })
