/**
 * Which facts deserve an alert. Everything is decided from facts and the times they carry: whoever reads the log
 * again decides the same.
 */
import { DateTime } from "effect"
import type { CircuitFact } from "../circuit/facts.ts"
import type { MessageFact } from "../message/facts.ts"

/** Types of the facts that can deserve an alert. Others need not be looked at. */
export const alertingFacts = [
  "CircuitOpened",
  "CircuitClosed",
  "CircuitReset",
  "MessageFailed",
  "MessageDeadLettered",
  "OverdueBegan",
  "OverdueEnded"
] as const

const worthy: ReadonlySet<string> = new Set(alertingFacts)

/** `name` is `Type@version`. */
export const mayAlert = (name: string): boolean => worthy.has(name.slice(0, name.indexOf("@")))

const NEWS_MS = 24 * 3_600_000

/**
 * Nobody is told today of what happened before yesterday. It also bounds what is raised once more when the log has to
 * be read from its beginning: the keys of a day's alerts are still known (see retention).
 */
export const isNews = (at: DateTime.Utc, now: DateTime.Utc): boolean =>
  DateTime.toEpochMillis(now) - DateTime.toEpochMillis(at) < NEWS_MS

/**
 * What the last fact of a circuit's history is to people. A circuit that re-opens was never closed: they know. One
 * that is held was stopped by somebody who knows, and only what was opened can be closed again: the reset of a hold
 * is no news unless the circuit had opened before it.
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

/** Whether a dead letter of a destination is told: the first, and then no other for an hour. */
export const mayTellAgain = (toldAt: DateTime.Utc | null, at: DateTime.Utc): boolean =>
  toldAt === null || DateTime.toEpochMillis(at) - DateTime.toEpochMillis(toldAt) >= QUIET_MS

/** What was told before then keeps nobody silent at `at` any more. */
export const quietSince = (at: DateTime.Utc): DateTime.Utc => DateTime.subtract(at, { milliseconds: QUIET_MS })
