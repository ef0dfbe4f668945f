/** A circuit for people, folded from its facts. */
import type { DateTime } from "effect"
import type { MessageId } from "../ids.ts"
import { replay } from "./decider.ts"
import type { CircuitFact } from "./facts.ts"
import type { CircuitStatus } from "./machine.ts"

export interface DatedCircuitFact {
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly fact: CircuitFact
}

export interface CircuitSituation {
  readonly status: CircuitStatus
  /** Since when it has not been closed, or, of a held one, has been held. Null while closed. */
  readonly since: DateTime.Utc | null
  readonly until: DateTime.Utc | null
  readonly probe: MessageId | null
  readonly cause: string | null
  readonly by: string | null
  readonly reason: string | null
}

export const closed: CircuitSituation = {
  status: "CLOSED",
  since: null,
  until: null,
  probe: null,
  cause: null,
  by: null,
  reason: null
}

export const situationOf = (history: ReadonlyArray<DatedCircuitFact>): CircuitSituation => {
  const { status, memory } = replay(history.map(({ fact }) => fact))
  if (status === "CLOSED") return closed
  const begun = history.findLastIndex(({ fact }) => fact.type === "CircuitClosed" || fact.type === "CircuitReset") + 1
  const trouble = history.slice(begun)
  const held = trouble.find(({ fact }) => fact.type === "CircuitHeld")
  if (held?.fact.type === "CircuitHeld") {
    const { reason } = held.fact
    return {
      ...closed,
      status,
      since: held.at,
      by: held.actor,
      reason,
      cause: reason === null ? "held by hand" : `held by hand: ${reason}`
    }
  }
  return {
    status,
    since: trouble[0]!.at,
    until: memory.until,
    probe: memory.probe,
    cause: causeOf(trouble.map(({ fact }) => fact)),
    by: null,
    reason: null
  }
}

const causeOf = (trouble: ReadonlyArray<CircuitFact>): string => {
  const [first] = trouble
  const last = trouble.findLast(({ type }) => type === "CircuitOpened" || type === "CircuitReopened") ?? first!
  const probes = trouble.filter(({ type }) => type === "CircuitReopened").length
  const since = probes === 0 ? "" : `, and ${counted(probes, "probe")} failed since`
  if ("error" in last && last.error !== null) return `${last.error.code}: ${last.error.message}${since}`
  const failures = first?.type === "CircuitOpened" ? first.failures : 1
  return `${counted(failures, "attempt")} in a row failed${since}`
}

const counted = (count: number, noun: string): string => (count === 1 ? `1 ${noun}` : `${count} ${noun}s`)
