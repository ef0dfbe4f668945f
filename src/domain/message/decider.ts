/**
 * `initial · decide · evolve · replay`: what callers may ask of a message, and what then becomes
 * history. Time and dice arrive inside the command, so the same command on the same history always
 * decides the same facts.
 */
import { DateTime, Result, Schema } from "effect"
import { initialTransition } from "xstate"
import type { ReplayId } from "../ids.ts"
import { retryWaitMs } from "../retry.ts"
import type { DeliveryError, FactOf, MessageFact, MessageQueued } from "./facts.ts"
import { DOUBTS_MAX, messageMachine, receiptKey } from "./machine.ts"
import type { AttemptOutcome } from "./outcome.ts"
import { type Message, type Status, step } from "./transitions.ts"

export type MessageCommand =
  | { readonly type: "QueueMessage"; readonly request: MessageQueued }
  | { readonly type: "StartAttempt"; readonly now: DateTime.Utc }
  | {
      readonly type: "SettleAttempt"
      readonly attempt: number
      readonly outcome: AttemptOutcome
      readonly now: DateTime.Utc
      readonly die: number
    }
  | {
      readonly type: "AbandonAttempt"
      readonly attempt: number
      readonly reason: string
      readonly now: DateTime.Utc
      readonly die: number
    }
  | { readonly type: "CancelMessage"; readonly reason: string | null }
  | {
      readonly type: "ReplayMessage"
      readonly now: DateTime.Utc
      readonly reason: string | null
      /** Another body comes with it. */
      readonly edited?: boolean
      readonly replayId?: ReplayId | null
    }
  | { readonly type: "EraseBody"; readonly reason: string | null }
  | {
      readonly type: "RecordReceipt"
      readonly receipt: FactOf<"ReceiptRecorded">["receipt"]
      readonly providerMessageId: string | null
      readonly reportedAt: DateTime.Utc
      readonly error: DeliveryError | null
    }

/** The law says no. Nothing was changed and asking again will not help while the message is in this state. */
export class CommandRejected extends Schema.TaggedError<CommandRejected>()("CommandRejected", {
  command: Schema.String,
  status: Schema.String
}) {}

const start = initialTransition(messageMachine)[0]
export const initial: Message = { status: start.value as Status, progress: start.context }

export const can = (message: Message, fact: MessageFact): boolean => step(message, fact) !== null

/** A fact the law forbids is a bug in whoever appended it: it stops us, it is never repaired silently. */
export const evolve = (message: Message, fact: MessageFact): Message => {
  const next = step(message, fact)
  if (next === null) throw new Error(`${fact.type} cannot follow ${message.status}`)
  return next
}

/** Rebuild a message from its history. */
export const replay = (history: ReadonlyArray<MessageFact>): Message => history.reduce(evolve, initial)

export const decide = (
  message: Message,
  command: MessageCommand
): Result.Result<ReadonlyArray<MessageFact>, CommandRejected> => {
  const facts = proposed(message, command)
  let next = message
  for (const fact of facts) {
    const after = step(next, fact)
    if (after === null) return rejected(message, command)
    next = after
  }
  return facts.length === 0 && !isNews(message, command) ? rejected(message, command) : Result.succeed(facts)
}

const rejected = (message: Message, command: MessageCommand) =>
  Result.fail(new CommandRejected({ command: command.type, status: message.status }))

/** A receipt we already hold is no news, nor is that an erased body shall go: accepted, and nothing is added. */
const isNews = (message: Message, command: MessageCommand): boolean =>
  (command.type === "RecordReceipt" || command.type === "EraseBody") && message.status !== "NEW"

const proposed = (message: Message, command: MessageCommand): ReadonlyArray<MessageFact> => {
  switch (command.type) {
    case "QueueMessage":
      return [command.request]
    case "StartAttempt":
      return startAttempt(message, command.now)
    case "SettleAttempt":
      return settleAttempt(message, command)
    case "AbandonAttempt":
      return abandonAttempt(message, command)
    case "CancelMessage":
      return [{ type: "MessageCancelled", reason: command.reason }]
    case "ReplayMessage":
      return [
        {
          type: "MessageReplayed",
          epoch: message.progress.epoch + 1,
          replayedAt: command.now,
          reason: command.reason,
          edited: command.edited ?? false,
          replayId: command.replayId ?? null
        }
      ]
    case "EraseBody":
      return message.progress.erased ? [] : [{ type: "MessageBodyErased", reason: command.reason }]
    case "RecordReceipt":
      return recordReceipt(message, command)
  }
}

const startAttempt = ({ progress }: Message, now: DateTime.Utc): ReadonlyArray<MessageFact> => {
  const { expiresAt, dueAt, epoch, attempt } = progress
  // A message that expires before it is due was handed out for its expiry, whatever this worker's clock says.
  const deadline = dueAt === null ? now : DateTime.max(dueAt, now)
  return expiresAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, deadline)
    ? [{ type: "MessageExpired", expiresAt }]
    : [{ type: "AttemptStarted", epoch, attempt: attempt + 1 }]
}

/** Five questions at 5 s and this growth reach over half an hour: an outage of the far side's, not of ours. */
const DOUBT_GROWTH = 4

type Settle = Extract<MessageCommand, { readonly type: "SettleAttempt" }>

const settleAttempt = (message: Message, command: Settle): ReadonlyArray<MessageFact> => {
  const { attempt, outcome, now } = command
  const { durationMs } = outcome
  // A receipt that overtook us proves what our own request could not.
  const proven = message.progress.receipts.length > 0 && outcome.type !== "Refused"
  if (outcome.type === "Accepted" || proven) {
    const taken: MessageFact = {
      type: "AttemptSucceeded",
      attempt,
      status: outcome.type === "Unknown" ? null : outcome.status,
      providerMessageId: outcome.type === "Accepted" ? outcome.providerMessageId : null,
      durationMs
    }
    return [taken, ...afterTaken(message, outcome.type === "Accepted" && outcome.delivered)]
  }
  switch (outcome.type) {
    case "Refused":
      return [
        { type: "AttemptFailed", attempt, error: outcome.error, status: outcome.status, durationMs, retryAt: null },
        { type: "MessageFailed", by: "response", error: outcome.error }
      ]
    case "Unreachable": {
      const retryAt = retryTime(message, command, outcome.retryAfterMs)
      const failed: MessageFact = {
        type: "AttemptFailed",
        attempt,
        error: outcome.error,
        status: outcome.status,
        durationMs,
        retryAt
      }
      return retryAt === null ? [failed, deadLettered(message, outcome.error)] : [failed]
    }
    case "Unknown":
      return mayAskAgain(message, outcome)
        ? [
            {
              type: "AttemptUnresolved",
              attempt,
              error: outcome.error,
              durationMs,
              reconcileAt: DateTime.add(now, {
                milliseconds: outcome.reconcileAfterMs * DOUBT_GROWTH ** message.progress.doubts
              })
            }
          ]
        : [
            { type: "AttemptFailed", attempt, error: outcome.error, status: outcome.status, durationMs, retryAt: null },
            { type: "MessageDeadLettered", reason: "outcome unknown", error: outcome.error }
          ]
  }
}

type Unknown = Extract<AttemptOutcome, { readonly type: "Unknown" }>

const mayAskAgain = (
  { progress }: Message,
  outcome: Unknown
): outcome is Unknown & { readonly reconcileAfterMs: number } =>
  outcome.reconcileAfterMs !== null && progress.doubts < DOUBTS_MAX

/** What receipts that arrived before our own commit make of a message that has just become SENT. */
const afterTaken = ({ progress }: Message, delivered: boolean): ReadonlyArray<MessageFact> => {
  if (delivered) return [{ type: "MessageDelivered", proof: "response" }]
  if (progress.verdict === "delivered") return [{ type: "MessageDelivered", proof: "receipt" }]
  if (progress.verdict === "failed") return [{ type: "MessageFailed", by: "receipt", error: reportedFailure }]
  return []
}

const reportedFailure: DeliveryError = {
  code: "receipt_failed",
  message: "the provider reported that the message could not be delivered",
  retryable: false
}

const abandonAttempt = (
  message: Message,
  command: Extract<MessageCommand, { readonly type: "AbandonAttempt" }>
): ReadonlyArray<MessageFact> => {
  const { attempt, reason } = command
  if (message.progress.receipts.length > 0) {
    return [
      { type: "AttemptSucceeded", attempt, status: null, providerMessageId: null, durationMs: 0 },
      ...afterTaken(message, false)
    ]
  }
  const retryAt = retryTime(message, command, null)
  const abandoned: MessageFact = { type: "AttemptAbandoned", attempt, reason, retryAt }
  return retryAt === null
    ? [abandoned, deadLettered(message, { code: "abandoned", message: reason, retryable: true })]
    : [abandoned]
}

/** When to try again, or null when no attempt is left or the message has grown too old for another. */
const retryTime = (
  { progress }: Message,
  command: { readonly attempt: number; readonly now: DateTime.Utc; readonly die: number },
  retryAfterMs: number | null
): DateTime.Utc | null => {
  if (command.attempt >= progress.attemptsMax) return null
  const at = DateTime.add(command.now, {
    milliseconds: retryWaitMs(progress.retry, command.attempt, command.die, retryAfterMs)
  })
  return isTooOld(progress, at) ? null : at
}

const isTooOld = ({ retry, openedAt }: Message["progress"], at: DateTime.Utc): boolean =>
  retry.ageMaxMs !== undefined &&
  openedAt !== null &&
  DateTime.toEpochMillis(at) - DateTime.toEpochMillis(openedAt) > retry.ageMaxMs

const deadLettered = ({ progress }: Message, error: DeliveryError): MessageFact => ({
  type: "MessageDeadLettered",
  reason: progress.attempt >= progress.attemptsMax ? "attempts used up" : "too old to retry",
  error
})

const recordReceipt = (
  message: Message,
  command: Extract<MessageCommand, { readonly type: "RecordReceipt" }>
): ReadonlyArray<MessageFact> => {
  const { receipt, providerMessageId, reportedAt, error } = command
  const { status, progress } = message
  const decides = receipt === "failed" ? "failed" : receipt === "sent" ? null : "delivered"
  const recorded: FactOf<"ReceiptRecorded"> = {
    type: "ReceiptRecorded",
    receipt,
    providerMessageId,
    reportedAt,
    error,
    contradicts: contradicts(message, decides)
  }
  if (progress.receipts.includes(receiptKey(recorded))) return []
  if (status === "SENT" && decides === "delivered") return [recorded, { type: "MessageDelivered", proof: "receipt" }]
  if (status === "SENT" && decides === "failed") {
    return [recorded, { type: "MessageFailed", by: "receipt", error: error ?? reportedFailure }]
  }
  // A send we were not sure of is settled by the first receipt that knows of it.
  if (status === "SENDING" && progress.phase === "unresolved") {
    const taken: MessageFact = {
      type: "AttemptSucceeded",
      attempt: progress.attempt,
      status: null,
      providerMessageId,
      durationMs: 0
    }
    if (decides === "delivered") return [recorded, taken, { type: "MessageDelivered", proof: "receipt" }]
    if (decides === "failed") {
      return [recorded, taken, { type: "MessageFailed", by: "receipt", error: error ?? reportedFailure }]
    }
    return [recorded, taken]
  }
  return [recorded]
}

/** A receipt that says the opposite of an ending: the message is not revived, but whoever could replay must see it. */
const contradicts = ({ status, progress }: Message, decides: "delivered" | "failed" | null): boolean => {
  if (decides === null) return false
  if (progress.verdict !== null && progress.verdict !== decides) return true
  switch (status) {
    case "DELIVERED":
      return decides === "failed"
    case "FAILED":
    case "DEAD_LETTER":
    case "CANCELLED":
    case "EXPIRED":
      return decides === "delivered"
    default:
      return false
  }
}
