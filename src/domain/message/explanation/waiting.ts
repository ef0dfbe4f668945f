/** The causes of a message that waits or has an attempt under way, the chief one first. */
import { DateTime } from "effect"
import type { CircuitSituation } from "../../circuit/situation.ts"
import type { Pause } from "../../destination/situation.ts"
import type { Message } from "../transitions.ts"
import type { StoredFact } from "../view.ts"
import { type Cause, errorIn, lastOf, type Reason } from "./cause.ts"
import type { Surroundings } from "./surroundings.ts"

/** In the queue, for an attempt or for a question about one. */
export const isWaiting = ({ status, progress }: Message): boolean =>
  status === "QUEUED" || (status === "SENDING" && progress.phase === "unresolved")

const because = (reason: Reason, says: string, waitsFor: Cause["waitsFor"], since: DateTime.Utc | null): Cause => ({
  ...{ reason, says, since, until: null, waitsFor }
})

export const parkedOf = ({ parked }: Surroundings): ReadonlyArray<Cause> => {
  const says = "Posthaste failed while it worked on the message and has parked it: its operator can have it tried again"
  return parked == null ? [] : [because("PARKED", says, "operator", parked.at)]
}

export const causesToWait = (
  message: Message,
  history: ReadonlyArray<StoredFact>,
  around: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => {
  const { dueAt } = message.progress
  const due = dueAt !== null && DateTime.isGreaterThan(dueAt, at) ? [notDue(message, history)] : []
  const holds = holdsOf(around, at)
  // A circuit that may be tried before the message is due does not hold it.
  const { until } = around.circuit
  const afterAll = due.length > 0 && until !== null && DateTime.isLessThanOrEqualTo(until, dueAt!)
  const causes = afterAll ? [...holds.filter(({ reason }) => reason !== "CIRCUIT_OPEN"), ...due] : [...holds, ...due]
  return causes.length > 0 ? causes : [dueNow(around, dueAt)]
}

export const holdsOf = (
  { suspension, before, workers, pause, disabling, circuit }: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => {
  const causes: Array<Cause> = []
  if (suspension !== null) {
    const says = `the operator has suspended the org (${suspension.reason}): its messages wait until it may go on`
    causes.push(because("ORG_SUSPENDED", says, "operator", suspension.since))
  }
  if (before !== null) {
    const says = `message ${before.id} (${before.status}) has the same ordering key and goes first`
    causes.push(because("BEHIND_ANOTHER", says, "message", null))
  }
  if (workers === 0) {
    const says = "no process that sends messages is alive: nothing is sent until one is started"
    causes.push(because("NO_WORKER", says, "worker", null))
  }
  if (disabling !== null) {
    const says = `the destination is disabled: ${disabling.reason}. Its messages wait until it is enabled`
    causes.push(because("DISABLED", says, "destination", disabling.since))
  }
  if (pause !== null) {
    const says = `the destination is paused${byOf(pause)}: its messages wait until it is resumed`
    causes.push(because("PAUSED", says, "destination", pause.since))
  }
  return circuit.status === "CLOSED" ? causes : [...causes, ofCircuit(circuit, at)]
}

const byOf = ({ by, reason }: Pause): string =>
  `${by === null ? "" : ` by ${by}`}${reason === null ? "" : ` (${reason})`}`

const ofCircuit = ({ status, cause, since, until }: CircuitSituation, at: DateTime.Utc): Cause => {
  const why = cause === null ? "" : ` (${cause})`
  if (status === "HELD") {
    const says = `the circuit of the destination is held by hand${why}: its messages wait for a reset`
    return because("CIRCUIT_HELD", says, "circuit", since)
  }
  const says = `the circuit of the destination is ${status}${why}: only probes are sent, one at a time`
  // A permit or an open time that is over lets the next probe go at once.
  const ends = until !== null && DateTime.isGreaterThan(until, at) ? until : null
  return { ...because("CIRCUIT_OPEN", says, "circuit", since), until: ends }
}

const notDue = ({ progress: { dueAt, attempt } }: Message, history: ReadonlyArray<StoredFact>): Cause => {
  const last = history.findLast(({ fact: { type } }) => settling.has(type))
  const retry = (before: string): Cause => ({
    ...because("RETRY", `${before}: the next one waits for its time`, "time", last!.at),
    until: dueAt
  })
  switch (last?.fact.type) {
    case "AttemptFailed":
      return retry(`attempt ${attempt} failed${errorIn(last.fact)}`)
    case "AttemptDeferred":
      return retry(`the last attempt was deferred and does not count${errorIn(last.fact)}`)
    case "AttemptAbandoned":
      return retry(`attempt ${attempt} was abandoned (${last.fact.reason})`)
    default:
      return { ...because("NOT_DUE", "the message is not due yet", "time", last?.at ?? history[0]!.at), until: dueAt }
  }
}

const settling: ReadonlySet<string> = new Set([
  "AttemptFailed",
  "AttemptDeferred",
  "AttemptAbandoned",
  "MessageReplayed"
])

const dueNow = ({ rateLimit }: Surroundings, dueAt: DateTime.Utc | null): Cause => {
  if (rateLimit === null)
    return because("DUE", "the message is due and goes as soon as a worker is free", "worker", dueAt)
  const { limit, periodMs } = rateLimit
  const says = `the message is due and waits for the rate limit of its destination: ${limit} messages every ${periodMs} ms`
  return because("RATE_LIMITED", says, "rateLimit", dueAt)
}

export const doubt = ({ progress: { attempt } }: Message, history: ReadonlyArray<StoredFact>): Cause => {
  const unresolved = lastOf(history)("AttemptUnresolved")
  const says = `the destination may have taken attempt ${attempt}: Posthaste asks it before anything is sent again`
  const until = unresolved?.fact.reconcileAt ?? null
  return { ...because("IN_DOUBT", says, "answer", unresolved?.at ?? null), until }
}

/** Longer than any request and the lease of its worker together. */
const OVERDUE_MS = 120_000

export const underWay = (
  { progress: { attempt } }: Message,
  history: ReadonlyArray<StoredFact>,
  { workers }: Surroundings,
  at: DateTime.Utc
): Cause => {
  const since = lastOf(history)("AttemptStarted")?.at ?? null
  const isOverdue = since !== null && DateTime.isGreaterThan(at, DateTime.add(since, { milliseconds: OVERDUE_MS }))
  const gone =
    workers === 0
      ? ", but no process that sends messages is alive: one must be started to settle it"
      : isOverdue
        ? " for longer than any request takes: its worker is gone or can't write, and another one takes it over"
        : ""
  return because("UNDER_WAY", `attempt ${attempt} is under way${gone}`, "answer", since)
}
