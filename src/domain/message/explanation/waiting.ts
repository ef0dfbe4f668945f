/** The causes of a message that waits or has an attempt under way, the chief one first. */
import { DateTime } from "effect"
import type { CircuitSituation } from "../../circuit/situation.ts"
import type { Pause } from "../../destination/situation.ts"
import type { Message } from "../transitions.ts"
import type { StoredFact } from "../view.ts"
import { type Cause, errorIn, lastOf } from "./cause.ts"
import type { Surroundings } from "./surroundings.ts"

/** In the queue, for an attempt or for a question about one. */
export const isWaiting = ({ status, progress }: Message): boolean =>
  status === "QUEUED" || (status === "SENDING" && progress.phase === "unresolved")

export const parkedOf = ({ parked }: Surroundings): ReadonlyArray<Cause> =>
  parked == null
    ? []
    : [
        {
          reason: "PARKED",
          says: "Posthaste failed while it worked on the message and has parked it: its operator can have it tried again",
          since: parked.at,
          until: null,
          waitsFor: "operator"
        }
      ]

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

/** The causes that hold back every message of the org, the destination or the line. */
export const holdsOf = (
  { suspension, before, workers, pause, disabling, circuit }: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => [
  ...(suspension === null
    ? []
    : [
        {
          reason: "ORG_SUSPENDED",
          says: `the operator has suspended the org (${suspension.reason}): its messages wait until it may go on`,
          since: suspension.since,
          until: null,
          waitsFor: "operator"
        } as const
      ]),
  ...(before === null
    ? []
    : [
        {
          reason: "BEHIND_ANOTHER",
          says: `message ${before.id} (${before.status}) has the same ordering key and goes first`,
          since: null,
          until: null,
          waitsFor: "message"
        } as const
      ]),
  ...(workers === 0
    ? [
        {
          reason: "NO_WORKER",
          says: "no process that sends messages is alive: nothing is sent until one is started",
          since: null,
          until: null,
          waitsFor: "worker"
        } as const
      ]
    : []),
  ...(disabling === null
    ? []
    : [
        {
          reason: "DISABLED",
          says: `the destination is disabled: ${disabling.reason}. Its messages wait until it is enabled`,
          since: disabling.since,
          until: null,
          waitsFor: "destination"
        } as const
      ]),
  ...(pause === null
    ? []
    : [
        {
          reason: "PAUSED",
          says: `the destination is paused${byOf(pause)}: its messages wait until it is resumed`,
          since: pause.since,
          until: null,
          waitsFor: "destination"
        } as const
      ]),
  ...(circuit.status === "CLOSED" ? [] : [ofCircuit(circuit, at)])
]

const byOf = ({ by, reason }: Pause): string =>
  `${by === null ? "" : ` by ${by}`}${reason === null ? "" : ` (${reason})`}`

const ofCircuit = ({ status, cause, since, until }: CircuitSituation, at: DateTime.Utc): Cause => {
  const why = cause === null ? "" : ` (${cause})`
  if (status === "HELD") {
    const says = `the circuit of the destination is held by hand${why}: its messages wait for a reset`
    return { reason: "CIRCUIT_HELD", says, since, until: null, waitsFor: "circuit" }
  }
  const says = `the circuit of the destination is ${status}${why}: only probes are sent, one at a time`
  // A permit or an open time that is over lets the next probe go at once.
  const ends = until !== null && DateTime.isGreaterThan(until, at) ? until : null
  return { reason: "CIRCUIT_OPEN", says, since, until: ends, waitsFor: "circuit" }
}

const notDue = ({ progress: { dueAt, attempt } }: Message, history: ReadonlyArray<StoredFact>): Cause => {
  const last = history.findLast(({ fact: { type } }) => settling.has(type))
  const about = { since: last?.at ?? history[0]!.at, until: dueAt, waitsFor: "time" } as const
  switch (last?.fact.type) {
    case "AttemptFailed":
      return {
        reason: "RETRY",
        says: `attempt ${attempt} failed${errorIn(last.fact)}: the next one waits for its time`,
        ...about
      }
    case "AttemptDeferred":
      return {
        reason: "RETRY",
        says: `the last attempt was deferred and does not count${errorIn(last.fact)}: the next one waits for its time`,
        ...about
      }
    case "AttemptAbandoned":
      return {
        reason: "RETRY",
        says: `attempt ${attempt} was abandoned (${last.fact.reason}): the next one waits for its time`,
        ...about
      }
    default:
      return { reason: "NOT_DUE", says: "the message is not due yet", ...about }
  }
}

/** A replay resets what was before it. */
const settling: ReadonlySet<string> = new Set([
  "AttemptFailed",
  "AttemptDeferred",
  "AttemptAbandoned",
  "MessageReplayed"
])

const dueNow = ({ rateLimit }: Surroundings, dueAt: DateTime.Utc | null): Cause =>
  rateLimit === null
    ? {
        reason: "DUE",
        says: "the message is due and goes as soon as a worker is free",
        since: dueAt,
        until: null,
        waitsFor: "worker"
      }
    : {
        reason: "RATE_LIMITED",
        says: `the message is due and waits for the rate limit of its destination: ${rateLimit.limit} messages every ${rateLimit.periodMs} ms`,
        since: dueAt,
        until: null,
        waitsFor: "rateLimit"
      }

export const doubt = ({ progress: { attempt } }: Message, history: ReadonlyArray<StoredFact>): Cause => {
  const unresolved = lastOf(history)("AttemptUnresolved")
  return {
    reason: "IN_DOUBT",
    says: `the destination may have taken attempt ${attempt}: Posthaste asks it before anything is sent again`,
    since: unresolved?.at ?? null,
    until: unresolved?.fact.reconcileAt ?? null,
    waitsFor: "answer"
  }
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
  return { reason: "UNDER_WAY", says: `attempt ${attempt} is under way${gone}`, since, until: null, waitsFor: "answer" }
}
