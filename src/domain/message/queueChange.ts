/**
 * The queue change of a fact: into the lane with a due time, out of it, or none; the queue holds only messages that
 * wait. Messages of one line go in the order they were accepted or replayed: only its head waits in the lane, and the
 * next moves up when the destination took the head or the head ended.
 */
import { DateTime } from "effect"
import type { DestinationId } from "../ids.ts"
import type { MessageFact } from "./facts.ts"
import type { Message } from "./transitions.ts"

export type QueueChange =
  | {
      readonly type: "Wait"
      readonly lane: DestinationId
      readonly dueAt: DateTime.Utc
      readonly epoch: number
      /** Closed attempts of this epoch; one in doubt is not closed. */
      readonly attempt: number
      /** A message that stands in its line keeps its place; any other goes to the end. */
      readonly line: string | null
    }
  /** The message leaves the queue and its line; a dead letter may block the line. */
  | {
      readonly type: "Leave"
      readonly lane: DestinationId
      readonly dueAt: DateTime.Utc
      readonly line: string | null
      readonly dead: boolean
    }
  /** The message was taken or has ended, and the next of its line may go; a dead letter may block the line. */
  | { readonly type: "LeaveLine"; readonly lane: DestinationId; readonly line: string; readonly dead: boolean }

export const onDeadLetter = ["block", "skip"] as const
export type OnDeadLetter = (typeof onDeadLetter)[number]

export const queueChange = (before: Message, fact: MessageFact, after: Message): QueueChange | null => {
  const lane = after.progress.destination
  if (lane === null) return null
  switch (fact.type) {
    case "MessageQueued":
    case "MessageReplayed":
    case "AttemptUnresolved":
    case "AttemptDeferred":
    case "MessageHurried":
      return wait(lane, after)
    case "AttemptFailed":
    case "AttemptAbandoned":
      return after.status === "QUEUED" ? wait(lane, after) : null
    case "MessageCancelled":
    case "MessageExpired":
      return leave(lane, before, false)
    case "AttemptSucceeded":
      // A receipt settled the message while it was in doubt or waited for a retry: no worker needs to claim it.
      return before.status === "QUEUED" || before.progress.phase === "unresolved"
        ? leave(lane, before, false)
        : leaveLine(lane, after, false)
    case "MessageFailed":
      // The provider's receipt comes after the destination took the message, and its line has moved on since.
      return fact.by === "response" ? leaveLine(lane, after, true) : null
    case "MessageDeadLettered":
      return before.status === "QUEUED" ? leave(lane, before, true) : leaveLine(lane, after, true)
    case "AttemptStarted":
    case "MessageDelivered":
    case "MessageBodyErased":
    case "MessageDismissed":
    case "ReceiptRecorded":
      return null
  }
}

/**
 * The time for the queue to hand the message out: its due time or, while it waits for an attempt, an earlier expiry.
 */
export const attentionAt = ({ status, progress: { dueAt, expiresAt } }: Message): DateTime.Utc | null =>
  status === "QUEUED" && dueAt !== null && expiresAt !== null && DateTime.isLessThan(expiresAt, dueAt)
    ? expiresAt
    : dueAt

const wait = (lane: DestinationId, message: Message): QueueChange | null => {
  const dueAt = attentionAt(message)
  const { epoch, attempt, phase, line } = message.progress
  const closed = phase === "unresolved" ? attempt - 1 : attempt
  return dueAt === null ? null : { type: "Wait", lane, dueAt, epoch, attempt: closed, line }
}

const leave = (lane: DestinationId, message: Message, dead: boolean): QueueChange | null => {
  const dueAt = attentionAt(message)
  return dueAt === null ? null : { type: "Leave", lane, dueAt, line: message.progress.line, dead }
}

const leaveLine = (lane: DestinationId, { progress: { line } }: Message, dead: boolean): QueueChange | null =>
  line === null ? null : { type: "LeaveLine", lane, line, dead }
