/**
 * The explanation of a message: where it is, why, and what comes next, from its facts and surroundings. The sentences
 * name no times, the fields do.
 */
import type { DateTime } from "effect"
import type { MessageId } from "../../ids.ts"
import type { MessageStatus } from "../machine.ts"
import type { Message } from "../transitions.ts"
import { type StoredFact, timeline } from "../view.ts"
import { type Action, actionsOf } from "./actions.ts"
import type { Cause } from "./cause.ts"
import { causeOf } from "./settled.ts"
import { type Restored, restoredOf, type Surroundings } from "./surroundings.ts"
import { causesToWait, doubt, holdsOf, isWaiting, parkedOf, underWay } from "./waiting.ts"

export interface Explanation extends Cause {
  readonly id: MessageId
  readonly status: MessageStatus
  readonly at: DateTime.Utc
  readonly also: ReadonlyArray<Cause>
  readonly next: string
  readonly before: Surroundings["before"]
  /** Messages of its destination that are due before it; null when it does not wait, or that is unknown. */
  readonly ahead: number | null
  readonly actions: ReadonlyArray<Action>
  readonly restored: Restored | null
  readonly unknown: ReadonlyArray<string>
}

export const explain = (
  id: MessageId,
  history: ReadonlyArray<StoredFact>,
  around: Surroundings,
  at: DateTime.Utc
): Explanation | null => {
  const opening = history[0]?.fact
  if (opening?.type !== "MessageQueued") return null
  const { message } = timeline(history)
  const [first, ...also] = [...parkedOf(around), ...causesOf(message, history, around, at)]
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

const causesOf = (
  message: Message,
  history: ReadonlyArray<StoredFact>,
  around: Surroundings,
  at: DateTime.Utc
): ReadonlyArray<Cause> => {
  const status = message.status as MessageStatus
  switch (status) {
    case "QUEUED":
      return causesToWait(message, history, around, at)
    case "SENDING":
      return message.progress.phase === "unresolved"
        ? [doubt(message, history), ...holdsOf(around, at)]
        : [underWay(message, history, around, at)]
    default:
      return [causeOf(status, history)]
  }
}

const nextOf = ({ status, progress }: Message, { reason }: Cause): string => {
  switch (reason) {
    case "PARKED":
      return "it is tried again when an operator wants it, or by the next release"
    case "ORG_SUSPENDED":
      return "nothing, until the operator lets the org go on, or the message is too old"
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
