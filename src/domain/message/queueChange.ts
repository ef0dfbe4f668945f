/**
 * What a fact means for the queue. The queue holds only what waits, so a fact either puts the message
 * in its lane with the time it wants attention, takes it out, or means nothing to the queue.
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
    }
  | { readonly type: "Leave"; readonly lane: DestinationId; readonly dueAt: DateTime.Utc }

/** `before` and `after` are the message on both sides of `fact`. */
export const queueChange = (before: Message, fact: MessageFact, after: Message): QueueChange | null => {
  const lane = after.progress.destination
  if (lane === null) return null
  switch (fact.type) {
    case "MessageQueued":
    case "MessageReplayed":
    case "AttemptUnresolved":
      return wait(lane, after)
    case "AttemptFailed":
    case "AttemptAbandoned":
      return after.status === "QUEUED" ? wait(lane, after) : null
    case "MessageCancelled":
    case "MessageExpired":
      return leave(lane, before)
    case "AttemptSucceeded":
      // A receipt settled a doubtful attempt: nobody needs to come back for it.
      return before.progress.phase === "unresolved" ? leave(lane, before) : null
    case "AttemptStarted":
    case "MessageDelivered":
    case "MessageFailed":
    case "MessageDeadLettered":
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
  const { epoch, attempt, phase } = message.progress
  const closed = phase === "unresolved" ? attempt - 1 : attempt
  return dueAt === null ? null : { type: "Wait", lane, dueAt, epoch, attempt: closed }
}

const leave = (lane: DestinationId, message: Message): QueueChange | null => {
  const dueAt = attentionAt(message)
  return dueAt === null ? null : { type: "Leave", lane, dueAt }
}
