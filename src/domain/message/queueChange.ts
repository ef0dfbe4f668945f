/**
 * What a fact means for the queue. The queue holds only what waits, so a fact either puts the message
 * in its lane with the time it wants attention, takes it out, or means nothing to the queue.
 *
 * Messages of a lane with the same ordering key stand in a line, in the order they were accepted or replayed. Only
 * its head waits in the lane; the next one moves up when the head was taken by the destination or ended.
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
      /** Attempts of this epoch that are closed: one in doubt is not. */
      readonly attempt: number
      /** The ordering key. One that stands in its line already keeps its place, one that does not goes to the end. */
      readonly line: string | null
    }
  /** It waits no longer, and steps out of its line. */
  | { readonly type: "Leave"; readonly lane: DestinationId; readonly dueAt: DateTime.Utc; readonly line: string | null }
  /** It is through, and the next in its line may go; a dead letter may block the line instead, as its lane says. */
  | { readonly type: "LeaveLine"; readonly lane: DestinationId; readonly line: string; readonly dead: boolean }

/** What a dead letter does to those who stand in line behind it. */
export const onDeadLetter = ["block", "skip"] as const
export type OnDeadLetter = (typeof onDeadLetter)[number]

/** `before` and `after` are the message on both sides of `fact`. */
export const queueChange = (before: Message, fact: MessageFact, after: Message): QueueChange | null => {
  const lane = after.progress.destination
  if (lane === null) return null
  switch (fact.type) {
    case "MessageQueued":
    case "MessageReplayed":
    case "AttemptUnresolved":
    case "AttemptDeferred":
      return wait(lane, after)
    case "AttemptFailed":
    case "AttemptAbandoned":
      return after.status === "QUEUED" ? wait(lane, after) : null
    case "MessageCancelled":
    case "MessageExpired":
      return leave(lane, before)
    case "AttemptSucceeded":
      // Settled by a receipt, while it was in doubt or waited for a retry: nobody needs to come back for it.
      return before.status === "QUEUED" || before.progress.phase === "unresolved"
        ? leave(lane, before)
        : leaveLine(lane, after, false)
    case "MessageFailed":
      // A provider's receipt comes after the message was taken, and the line has moved on since.
      return fact.by === "response" ? leaveLine(lane, after, true) : null
    case "MessageDeadLettered":
      return leaveLine(lane, after, true)
    case "AttemptStarted":
    case "MessageDelivered":
    case "MessageBodyErased":
    case "ReceiptRecorded":
      return null
  }
}

/** When the queue should hand the message out: its due time, or, while it waits to be sent, an earlier expiry. */
export const attentionAt = ({ status, progress: { dueAt, expiresAt } }: Message): DateTime.Utc | null =>
  status === "QUEUED" && dueAt !== null && expiresAt !== null && DateTime.isLessThan(expiresAt, dueAt)
    ? expiresAt
    : dueAt

const wait = (lane: DestinationId, message: Message): QueueChange | null => {
  const dueAt = attentionAt(message)
  const { epoch, attempt, phase, orderingKey } = message.progress
  const closed = phase === "unresolved" ? attempt - 1 : attempt
  return dueAt === null ? null : { type: "Wait", lane, dueAt, epoch, attempt: closed, line: orderingKey }
}

const leave = (lane: DestinationId, message: Message): QueueChange | null => {
  const dueAt = attentionAt(message)
  return dueAt === null ? null : { type: "Leave", lane, dueAt, line: message.progress.orderingKey }
}

const leaveLine = (lane: DestinationId, { progress: { orderingKey } }: Message, dead: boolean): QueueChange | null =>
  orderingKey === null ? null : { type: "LeaveLine", lane, line: orderingKey, dead }
