/**
 * Where a message is, why, and what comes next: from its facts and from what stands around it. One composition for the API,
 * the command line and whoever else shows a message. Data in, data out; the sentences name no times, the fields do.
 */
import { DateTime, Result } from "effect"
import type { CircuitSituation } from "../circuit/situation.ts"
import type { RateLimit } from "../delivery/rateLimit.ts"
import type { Disabling, Pause } from "../destination/situation.ts"
import type { DestinationId, MessageId } from "../ids.ts"
import { decide, type MessageCommand } from "./decider.ts"
import type { FactOf, MessageFact } from "./facts.ts"
import type { MessageStatus } from "./machine.ts"
import type { Message } from "./transitions.ts"
import { type StoredFact, timeline } from "./view.ts"

export const reasons = [
  "SET_ASIDE",
  "BEHIND_ANOTHER",
  "NO_WORKER",
  "DISABLED",
  "PAUSED",
  "CIRCUIT_HELD",
  "CIRCUIT_OPEN",
  "NOT_DUE",
  "RETRY",
  "RATE_LIMITED",
  "DUE",
  "UNDER_WAY",
  "IN_DOUBT",
  "AWAITING_RECEIPT",
  "DELIVERED",
  "REFUSED",
  "ATTEMPTS_USED_UP",
  "TOO_OLD",
  "OUTCOME_UNKNOWN",
  "CANCELLED",
  "EXPIRED"
] as const
export type Reason = (typeof reasons)[number]

export const waits = [
  "operator",
  "time",
  "message",
  "destination",
  "circuit",
  "rateLimit",
  "worker",
  "answer",
  "receipt"
] as const

/** One thing that keeps the message where it is. */
export interface Cause {
  readonly reason: Reason
  /** In a sentence. */
  readonly says: string
  readonly since: DateTime.Utc | null
  /** When it ends by itself; null when it does not, or when nobody knows. */
  readonly until: DateTime.Utc | null
  /** Null when the message has ended. */
  readonly waitsFor: (typeof waits)[number] | null
}

/** What a person can do about it. */
export interface Action {
  readonly action: "cancel" | "retry-now" | "replay" | "dismiss" | "resend" | "enable" | "resume" | "reset"
  readonly on: "message" | "destination" | "circuit"
  readonly id: string
  readonly says: string
}

/** The store was restored from a backup: what was done between the two moments is not known. */
export interface Restoration {
  /** Up to here everything stored is known. */
  readonly savedAt: DateTime.Utc
  readonly noticedAt: DateTime.Utc
}

export interface Explanation extends Cause {
  readonly id: MessageId
  readonly status: MessageStatus
  /** The moment this is about. */
  readonly at: DateTime.Utc
  /** What else would keep it where it is, were the first cause gone. */
  readonly also: ReadonlyArray<Cause>
  /** What happens next by itself, in a sentence. */
  readonly next: string
  /** The message with the same ordering key that goes first. */
  readonly before: { readonly id: MessageId; readonly status: MessageStatus } | null
  /** How many messages of its destination are due before it; null when it does not wait, and when nobody knows. */
  readonly ahead: number | null
  readonly actions: ReadonlyArray<Action>
  /** Of a message that waited, or was under way, in a backup from which the store was restored. */
  readonly restored: (Restoration & { readonly says: string }) | null
  /** What could not be looked up, so that nobody takes silence for an answer. */
  readonly unknown: ReadonlyArray<string>
}

/** What stands around a message. */
export interface Surroundings {
  /** Posthaste can't process it; absent: nobody looked. */
  readonly setAside?: { readonly since: DateTime.Utc; readonly againAt: DateTime.Utc } | null
  readonly pause: Pause | null
  readonly disabling: Disabling | null
  readonly circuit: CircuitSituation
  readonly rateLimit: RateLimit | null
  readonly before: Explanation["before"]
  readonly ahead: number | null
  /** How many living processes send messages; null when nobody knows. */
  readonly workers: number | null
  /** Oldest first. */
  readonly restorations: ReadonlyArray<Restoration>
  readonly unknown: ReadonlyArray<string>
}

/** Null for a stream that does not exist (yet). */
export const explain = (
  id: MessageId,
  history: ReadonlyArray<StoredFact>,
  around: Surroundings,
  at: DateTime.Utc
): Explanation | null => {
  const opening = history[0]?.fact
  if (opening?.type !== "MessageQueued") return null
  const { message } = timeline(history)
  const [first, ...also] = [...setAsideOf(around), ...causesOf(message, history, around, at)]
  const waiting = isWaiting(message)
  return {
    ...first!,
    id,
    status: message.status as MessageStatus,
    at,
    also,
    next: nextOf(message, first!),
    before: waiting ? around.before : null,
    ahead: waiting ? around.ahead : null,
    actions: actionsOf(id, opening.destination, message, around, at),
    restored: restoredOf(history, around.restorations, at),
    unknown: waiting ? around.unknown : []
  }
}

const setAsideOf = ({ setAside }: Surroundings): ReadonlyArray<Cause> =>
  setAside == null
    ? []
    : [
        {
          reason: "SET_ASIDE",
          says: "Posthaste failed while it worked on the message and has set it aside: its operator can see why",
          since: setAside.since,
          until: setAside.againAt,
          waitsFor: "operator"
        }
      ]

/** It is in the queue, for an attempt or for a question about one. */
export const isWaiting = ({ status, progress }: Message): boolean =>
  status === "QUEUED" || (status === "SENDING" && progress.phase === "unresolved")

/** Null as well where the facts of the time in between are there after all, because the streams were not restored. */
const restoredOf = (
  history: ReadonlyArray<StoredFact>,
  restorations: ReadonlyArray<Restoration>,
  at: DateTime.Utc
): Explanation["restored"] => {
  const found = restorations.findLast(({ savedAt, noticedAt }) => {
    if (DateTime.isGreaterThan(noticedAt, at)) return false
    const saved = history.filter((fact) => DateTime.isLessThanOrEqualTo(fact.at, savedAt))
    if (saved.length === 0) return false
    const next = history[saved.length]
    if (next !== undefined && DateTime.isLessThan(next.at, noticedAt)) return false
    const { status } = timeline(saved).message
    return status === "QUEUED" || status === "SENDING"
  })
  return found === undefined
    ? null
    : {
        ...found,
        says: "the database was restored to an earlier moment, when the message had not ended: it may have been sent after that moment and before the restore, and is then sent a second time under the same id"
      }
}

const ended = { until: null, waitsFor: null }

/** One at least; the first is the chief one. */
const causesOf = (
  message: Message,
  history: ReadonlyArray<StoredFact>,
  around: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => {
  const last = lastOf(history)
  switch (message.status as MessageStatus) {
    case "QUEUED":
      return causesToWait(message, history, around, at)
    case "SENDING":
      return message.progress.phase === "unresolved"
        ? [doubt(message, history), ...holdsOf(around, at)]
        : [underWay(message, history, around, at)]
    case "SENT":
      return [
        {
          reason: "AWAITING_RECEIPT",
          says: "the destination took the message; a proof of delivery has not arrived yet",
          since: last("AttemptSucceeded")?.at ?? null,
          until: null,
          waitsFor: "receipt"
        }
      ]
    case "DELIVERED": {
      const delivered = last("MessageDelivered")
      const says =
        delivered?.fact.proof === "receipt"
          ? "a receipt from the provider proves the delivery"
          : "the destination answered that it received the message"
      return [{ reason: "DELIVERED", says, since: delivered?.at ?? null, ...ended }]
    }
    case "FAILED": {
      const failed = last("MessageFailed")
      const by = failed?.fact.by === "receipt" ? " by a receipt of the provider" : ""
      return [
        {
          reason: "REFUSED",
          says: `the message was refused for good${by}${errorIn(failed?.fact)}`,
          since: failed?.at ?? null,
          ...ended
        }
      ]
    }
    case "DEAD_LETTER": {
      const dead = last("MessageDeadLettered")
      const [reason, says] = deadBecause[dead?.fact.reason ?? "attempts used up"]
      return [{ reason, says: `${says}${errorIn(dead?.fact)}`, since: dead?.at ?? null, ...ended }]
    }
    case "CANCELLED": {
      const cancelled = last("MessageCancelled")
      const why = cancelled?.fact.reason
      const says = `the message was cancelled before it was sent${why == null ? "" : `: ${why}`}`
      return [{ reason: "CANCELLED", says, since: cancelled?.at ?? null, ...ended }]
    }
    case "EXPIRED":
      return [
        {
          reason: "EXPIRED",
          says: "the message expired before it could be sent",
          since: last("MessageExpired")?.at ?? null,
          ...ended
        }
      ]
  }
}

const deadBecause = {
  "attempts used up": ["ATTEMPTS_USED_UP", "no attempt is left"],
  "too old to retry": ["TOO_OLD", "the next attempt would have come too late"],
  "too old": ["TOO_OLD", "it grew too old while it waited"],
  "outcome unknown": ["OUTCOME_UNKNOWN", "nobody can say whether the destination took the message"]
} as const

const lastOf =
  (history: ReadonlyArray<StoredFact>) =>
  <T extends MessageFact["type"]>(type: T) =>
    history.findLast(({ fact }) => fact.type === type) as (StoredFact & { readonly fact: FactOf<T> }) | undefined

const errorIn = (fact: { readonly error: { readonly code: string; readonly message: string } } | undefined) =>
  fact === undefined ? "" : ` (${fact.error.code}: ${fact.error.message})`

const causesToWait = (
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

/** What holds back every message of the destination or of its line. */
const holdsOf = (
  { before, workers, pause, disabling, circuit }: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => [
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

/** After a replay nothing counts that was before. */
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

const doubt = ({ progress: { attempt } }: Message, history: ReadonlyArray<StoredFact>): Cause => {
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

const underWay = (
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

const nextOf = ({ status, progress }: Message, { reason }: Cause): string => {
  switch (reason) {
    case "SET_ASIDE":
      return "it is tried again by itself, or when an operator wants it"
    case "BEHIND_ANOTHER":
      return "it goes when the message before it has ended"
    case "NO_WORKER":
      return "nothing, until a worker is started"
    case "DISABLED":
      return "nothing, until somebody enables the destination, or the message is too old"
    case "PAUSED":
      return "nothing, until somebody resumes the destination"
    case "CIRCUIT_HELD":
      return "nothing, until somebody resets the circuit"
    case "CIRCUIT_OPEN":
      return "when the open time is over one message tests the destination; if it gets through, the others follow"
    case "NOT_DUE":
    case "RETRY":
    case "RATE_LIMITED":
    case "DUE":
      return `attempt ${progress.attempt + 1} of ${progress.attemptsMax}`
    case "UNDER_WAY":
      return "the answer settles the attempt, or its time runs out"
    case "IN_DOUBT":
      return "Posthaste asks the destination what became of the attempt"
    case "AWAITING_RECEIPT":
      return "a receipt of the provider says whether it arrived"
    default:
      return status === "FAILED" || status === "DEAD_LETTER"
        ? "nothing, until somebody replays it"
        : "nothing: it has ended"
  }
}

const actionsOf = (
  id: MessageId,
  destination: DestinationId,
  message: Message,
  { pause, disabling, circuit }: Surroundings,
  now: DateTime.Utc
): ReadonlyArray<Action> => {
  const isAllowed = (command: MessageCommand) => Result.isSuccess(decide(message, command))
  const replay = { type: "ReplayMessage", now, reason: null } as const
  const actions: Array<Action> = []
  if (isWaiting(message)) {
    if (disabling !== null) {
      actions.push({ action: "enable", on: "destination", id: destination, says: "enable the destination" })
    }
    if (pause !== null) {
      actions.push({ action: "resume", on: "destination", id: destination, says: "send to the destination again" })
    }
    if (circuit.status !== "CLOSED") {
      actions.push({
        action: "reset",
        on: "circuit",
        id: destination,
        says: "close the circuit now, if the destination works again"
      })
    }
  }
  const { dueAt } = message.progress
  if (dueAt !== null && DateTime.isGreaterThan(dueAt, now) && isAllowed({ type: "HurryMessage", now })) {
    actions.push({ action: "retry-now", on: "message", id, says: "send it now, before its time" })
  }
  if (isAllowed({ type: "CancelMessage", reason: null })) {
    actions.push({ action: "cancel", on: "message", id, says: "never send it" })
  }
  if (isAllowed(replay)) actions.push({ action: "replay", on: "message", id, says: "send it again" })
  else if (isAllowed({ ...replay, edited: true })) {
    actions.push({
      action: "replay",
      on: "message",
      id,
      says: "send it again with another payloadJson: its body was erased"
    })
  }
  if (!message.progress.dismissed && isAllowed({ type: "DismissMessage", reason: null })) {
    actions.push({ action: "dismiss", on: "message", id, says: "take it from the list of dead letters" })
  }
  if (hasArrived.has(message.status)) {
    actions.push({
      action: "resend",
      on: "message",
      id,
      says: "send it once more, as a new message that names this one"
    })
  }
  return actions
}

/** The destination has it, and keeps no second one with its id. */
const hasArrived: ReadonlySet<string> = new Set(["SENT", "DELIVERED"])
