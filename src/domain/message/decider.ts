/**
 * `initial · decide · evolve · replay` of a message. Time and dice arrive inside the command, so the same command on
 * the same history always decides the same facts.
 */
import { DateTime, Result, Schema } from "effect"
import { initialTransition } from "xstate"
import type { DeliveryError } from "../delivery/DeliveryError.ts"
import type { Exchange } from "../delivery/exchange.ts"
import type { AttemptOutcome } from "../delivery/outcome.ts"
import { ageMaxMsOf, deferAgainMs, deferWaitMs, retryWaitMs } from "../delivery/retry.ts"
import { foldOf } from "../fold.ts"
import type { ReplayId } from "../ids.ts"
import type { FactOf, MessageFact, MessageQueued, ReceiptStatus } from "./facts.ts"
import { DOUBTS_MAX, decides, messageMachine, type Progress, receiptKey } from "./machine.ts"
import { type Message, type Status, step } from "./transitions.ts"

export type MessageCommand =
  | { readonly type: "QueueMessage"; readonly request: MessageQueued }
  | { readonly type: "StartAttempt"; readonly now: DateTime.Utc }
  | {
      readonly type: "SettleAttempt"
      readonly attempt: number
      readonly outcome: AttemptOutcome
      readonly exchange?: Exchange | null
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
  /** Ends a message whose time is over; refused while there is time left. */
  | { readonly type: "EndMessage"; readonly now: DateTime.Utc }
  | { readonly type: "HurryMessage"; readonly now: DateTime.Utc }
  | { readonly type: "CancelMessage"; readonly reason: string | null }
  | { readonly type: "DismissMessage"; readonly reason: string | null }
  | {
      readonly type: "ReplayMessage"
      readonly now: DateTime.Utc
      readonly reason: string | null
      readonly edited?: boolean
      readonly replayId?: ReplayId | null
    }
  | { readonly type: "EraseBody"; readonly reason: string | null }
  | ({ readonly type: "RecordReceipt" } & ReportedReceipt)

/** A receipt as the provider reports it. Epoch and attempt come from the returned callback data; null without it. */
export type ReportedReceipt = Omit<FactOf<"ReceiptRecorded">, "type" | "contradicts">

export class CommandRejected extends Schema.TaggedError<CommandRejected>()("CommandRejected", {
  command: Schema.String,
  status: Schema.String
}) {}

const start = initialTransition(messageMachine)[0]
export const initial: Message = { status: start.value as Status, progress: start.context }

export const { allows, can, evolve, replay } = foldOf(initial, step, ({ status }) => status)

export const decide = (
  message: Message,
  command: MessageCommand
): Result.Result<ReadonlyArray<MessageFact>, CommandRejected> => {
  const facts = proposed(message, command)
  const isAccepted = facts.length === 0 ? addsNothing(message, command) : allows(message, facts)
  return isAccepted
    ? Result.succeed(facts)
    : Result.fail(new CommandRejected({ command: command.type, status: message.status }))
}

/** A repeated receipt, erasure or dismissal, and the hurry of a due message, are accepted and add no fact. */
const addsNothing = (message: Message, command: MessageCommand): boolean => {
  if (command.type === "HurryMessage") return isDueAt(message, command.now)
  if (command.type === "DismissMessage") return message.progress.dismissed
  return (command.type === "RecordReceipt" || command.type === "EraseBody") && message.status !== "NEW"
}

/**
 * The bounds of a message's history, which is read whole: with 1,600 facts eight readers blocked all others for
 * seconds.
 */
const EPOCHS_MAX = 100
const ATTEMPTS_IN_ALL_MAX = 1_000

export const mayBeReopened = ({ progress: { epoch, attemptsMax } }: Message): boolean =>
  epoch < EPOCHS_MAX && epoch * attemptsMax < ATTEMPTS_IN_ALL_MAX

const isDueAt = ({ status, progress: { dueAt } }: Message, now: DateTime.Utc): boolean =>
  status === "QUEUED" && dueAt !== null && DateTime.isLessThanOrEqualTo(dueAt, now)

const proposed = (message: Message, command: MessageCommand): ReadonlyArray<MessageFact> => {
  switch (command.type) {
    case "QueueMessage":
      return [command.request]
    case "StartAttempt":
      return startAttempt(message, command.now)
    case "EndMessage":
      return message.status === "QUEUED" ? (overdue(message, command.now) ?? []) : []
    case "SettleAttempt":
      return settleAttempt(message, command)
    case "AbandonAttempt":
      return abandonAttempt(message, command)
    case "CancelMessage":
      return [{ type: "MessageCancelled", reason: command.reason }]
    case "HurryMessage":
      return isDueAt(message, command.now) ? [] : [{ type: "MessageHurried", dueAt: command.now }]
    case "DismissMessage":
      return message.progress.dismissed ? [] : [{ type: "MessageDismissed", reason: command.reason }]
    case "ReplayMessage":
      if (!mayBeReopened(message)) return []
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

const startAttempt = (message: Message, now: DateTime.Utc): ReadonlyArray<MessageFact> => {
  const { taken, dueAt, epoch, attempt } = message.progress
  // A message that expires before it is due was claimed for its expiry, whatever this worker's clock says.
  const deadline = dueAt === null ? now : DateTime.max(dueAt, now)
  const ending = message.status === "QUEUED" ? (taken ? takenAfterAll(message) : overdue(message, deadline)) : null
  return ending ?? [{ type: "AttemptStarted", epoch, attempt: attempt + 1 }]
}

const overdue = (message: Message, at: DateTime.Utc): ReadonlyArray<MessageFact> | null => {
  const { taken, expiresAt, attempt } = message.progress
  if (taken) return null
  if (expiresAt !== null && DateTime.isLessThanOrEqualTo(expiresAt, at)) return [{ type: "MessageExpired", expiresAt }]
  if (!isTooOld(message.progress, at)) return null
  const tried = attempt === 0 ? "it was never sent" : `${attempt} ${attempt === 1 ? "attempt" : "attempts"} had failed`
  const error = { code: "too_old", message: `the message grew too old while it waited; ${tried}`, retryable: true }
  return [{ type: "MessageDeadLettered", reason: "too old", error }]
}

/** The year after has five digits. */
const LAST_MOMENT = DateTime.makeUnsafe("9999-12-31T23:59:59.999Z")

export const endsAt = ({ status, progress: { expiresAt, openedAt, retry } }: Message): DateTime.Utc | null => {
  if (status !== "QUEUED" || openedAt === null) return null
  const old = DateTime.min(DateTime.add(openedAt, { milliseconds: ageMaxMsOf(retry) }), LAST_MOMENT)
  return expiresAt === null ? old : DateTime.min(expiresAt, old)
}

/** Five questions from 5 s on with this growth cover half an hour, long enough for an outage of the destination. */
const DOUBT_GROWTH = 4

type Settle = Extract<MessageCommand, { readonly type: "SettleAttempt" }>

const settleAttempt = (message: Message, command: Settle): ReadonlyArray<MessageFact> => {
  const { attempt, outcome, now } = command
  const { durationMs } = outcome
  // The answer to a question about an attempt in doubt says nothing about how the attempt went.
  const exchanged = exchangedIn(message.progress.phase === "unresolved" ? null : command.exchange)
  if (outcome.type === "Accepted" || isProven(message, outcome)) {
    const ours = outcome.type === "Accepted" ? outcome.providerMessageId : null
    const proven = provenBy(message.progress)
    const taken: MessageFact = {
      type: "AttemptSucceeded",
      attempt,
      status: outcome.type === "Unknown" ? null : outcome.status,
      providerMessageId: ours ?? proven.providerMessageId,
      durationMs,
      ...exchanged
    }
    const receiptOutcome = ours === null ? proven.receiptOutcome : message.progress.receiptOutcome
    return [taken, ...afterTaken(receiptOutcome, outcome.type === "Accepted" && outcome.delivered, null)]
  }
  switch (outcome.type) {
    case "Refused":
      return [
        { ...failed(attempt, outcome, null), ...exchanged },
        { type: "MessageFailed", by: "response", error: outcome.error }
      ]
    case "Unreachable": {
      const retryAt = retryTime(message, command, outcome.retryAfterMs)
      const fact = { ...failed(attempt, outcome, retryAt), ...exchanged }
      return retryAt === null ? [fact, deadLettered(message, outcome.error)] : [fact]
    }
    case "Deferred":
      return deferAttempt(message, command, outcome)
    case "Unknown":
      return mayAskAgain(message, outcome)
        ? [
            {
              type: "AttemptUnresolved",
              attempt,
              error: outcome.error,
              durationMs,
              ...exchanged,
              reconcileAt: DateTime.add(now, {
                milliseconds: outcome.reconcileAfterMs * DOUBT_GROWTH ** message.progress.doubts
              })
            }
          ]
        : [
            { ...failed(attempt, outcome, null), ...exchanged },
            { type: "MessageDeadLettered", reason: "outcome unknown", error: outcome.error }
          ]
  }
}

const exchangedIn = (exchange: Exchange | null | undefined): { readonly exchange?: Exchange } =>
  exchange == null ? {} : { exchange }

const failed = (
  attempt: number,
  { error, status, durationMs }: Exclude<AttemptOutcome, { readonly type: "Accepted" }>,
  retryAt: DateTime.Utc | null
): FactOf<"AttemptFailed"> => ({ type: "AttemptFailed", attempt, error, status, durationMs, retryAt })

type Deferred = Extract<AttemptOutcome, { readonly type: "Deferred" }>

/** A deferral costs no attempt but time: a message that would grow too old for another attempt ends here. */
const deferAttempt = (message: Message, command: Settle, outcome: Deferred): ReadonlyArray<MessageFact> => {
  const { attempt, now } = command
  const { error, status, durationMs, afterMs } = outcome
  if (message.progress.phase === "unresolved") {
    // The provider deferred the question about an attempt: the attempt stays in doubt.
    return settleAttempt(message, {
      ...command,
      outcome: { type: "Unknown", error, status, reconcileAfterMs: afterMs, durationMs }
    })
  }
  const { deferrals, retry } = message.progress
  const waitMs = Math.max(deferWaitMs(afterMs), deferAgainMs(deferrals, ageMaxMsOf(retry)))
  const dueAt = DateTime.add(now, { milliseconds: waitMs })
  const exchanged = exchangedIn(command.exchange)
  return isTooOld(message.progress, dueAt)
    ? [
        { ...failed(attempt, outcome, null), ...exchanged },
        { type: "MessageDeadLettered", reason: "too old to retry", error }
      ]
    : [{ type: "AttemptDeferred", attempt, error, status, durationMs, ...exchanged, dueAt }]
}

type Unknown = Extract<AttemptOutcome, { readonly type: "Unknown" }>

const mayAskAgain = (
  { progress }: Message,
  outcome: Unknown
): outcome is Unknown & { readonly reconcileAfterMs: number } =>
  outcome.reconcileAfterMs !== null && progress.doubts < DOUBTS_MAX

/**
 * Receipts that arrived before the answer prove what the answer could not. A receipt of a failure proves that the
 * message reached the provider, unless the provider's own answer refused it.
 */
const isProven = ({ progress: { taken, receiptOutcome } }: Message, outcome: AttemptOutcome): boolean =>
  taken || (receiptOutcome === "failed" && (outcome.type === "Unreachable" || outcome.type === "Unknown"))

/**
 * The attempt of this epoch that the receipts prove. Of several, one that is not known to have failed counts; if it
 * failed, the failure counts, in whatever order the receipts came.
 */
const provenBy = (progress: Progress) => {
  const { providerIds, epoch, receipts, receiptOutcome } = progress
  const said = (receipt: ReceiptStatus, providerMessageId: string) =>
    receipts.includes(receiptKey(progress, { receipt, epoch, providerMessageId }))
  const names = providerIds.flatMap((known) => (known.epoch === epoch ? [known.id] : []))
  const taken = names.filter((id) => takenWords.some((word) => said(word, id)))
  const name = taken.findLast((id) => !said("failed", id)) ?? taken.at(-1)
  return {
    providerMessageId: name ?? names.at(-1) ?? null,
    receiptOutcome: receiptOutcome ?? (name !== undefined && said("failed", name) ? ("failed" as const) : null)
  }
}

const takenWords = ["sent", "delivered", "read"] as const satisfies ReadonlyArray<ReceiptStatus>

const afterTaken = (
  receiptOutcome: Progress["receiptOutcome"],
  delivered: boolean,
  error: DeliveryError | null
): ReadonlyArray<MessageFact> => {
  if (delivered) return [{ type: "MessageDelivered", proof: "response" }]
  if (receiptOutcome === "delivered") return [{ type: "MessageDelivered", proof: "receipt" }]
  if (receiptOutcome === "failed") return [{ type: "MessageFailed", by: "receipt", error: error ?? reportedFailure }]
  return []
}

/** Settles by receipts an attempt that was abandoned, is in doubt, or was recorded as failed. */
const takenAfterAll = ({ progress }: Message, error: DeliveryError | null = null): ReadonlyArray<MessageFact> => {
  const { providerMessageId, receiptOutcome } = provenBy(progress)
  return [
    { type: "AttemptSucceeded", attempt: progress.attempt, status: null, providerMessageId, durationMs: 0 },
    ...afterTaken(receiptOutcome, false, error)
  ]
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
  const { taken, receiptOutcome } = message.progress
  if (taken || receiptOutcome === "failed") return takenAfterAll(message)
  const retryAt = retryTime(message, command, null)
  const abandoned: MessageFact = { type: "AttemptAbandoned", attempt, reason, retryAt }
  return retryAt === null
    ? [abandoned, deadLettered(message, { code: "abandoned", message: reason, retryable: true })]
    : [abandoned]
}

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
  openedAt !== null && DateTime.toEpochMillis(at) - DateTime.toEpochMillis(openedAt) > ageMaxMsOf(retry)

const deadLettered = ({ progress }: Message, error: DeliveryError): MessageFact => ({
  type: "MessageDeadLettered",
  reason: progress.attempt >= progress.attemptsMax ? "attempts used up" : "too old to retry",
  error
})

type RecordReceipt = Extract<MessageCommand, { readonly type: "RecordReceipt" }>

const recordReceipt = (message: Message, command: RecordReceipt): ReadonlyArray<MessageFact> => {
  const { receipt, providerMessageId, attempt, reportedAt, error } = command
  const { progress } = message
  const epoch = epochOf(progress, command)
  const receiptOutcome = epoch === progress.epoch ? decides(progress, command) : null
  const recorded: FactOf<"ReceiptRecorded"> = {
    type: "ReceiptRecorded",
    receipt,
    providerMessageId,
    epoch,
    attempt,
    reportedAt,
    error,
    contradicts:
      epoch === progress.epoch ? contradicts(message, receiptOutcome) : receipt === "delivered" || receipt === "read"
  }
  if (progress.receipts.includes(receiptKey(progress, recorded))) return []
  const after = step(message, recorded)
  return epoch === progress.epoch && after !== null
    ? [recorded, ...factsAfterReceipt(after, command, receiptOutcome)]
    : [recorded]
}

/**
 * The epoch of a receipt: the one in which the provider gave this name; else the one that the receipt names; else the
 * current one, or the one before while the current one has no attempt.
 */
const epochOf = ({ providerIds, epoch, attempt }: Progress, command: RecordReceipt): number => {
  const known = providerIds.find(({ id }) => id === command.providerMessageId)
  if (known !== undefined) return known.epoch
  if (command.epoch !== null && command.epoch >= 1 && command.epoch <= epoch) return command.epoch
  return attempt === 0 && epoch > 1 ? epoch - 1 : epoch
}

const factsAfterReceipt = (
  message: Message,
  { receipt, error }: RecordReceipt,
  receiptOutcome: Progress["receiptOutcome"]
): ReadonlyArray<MessageFact> => {
  const { status, progress } = message
  const taken = receipt !== "failed" && progress.attempt > 0
  switch (status) {
    case "SENT":
      return receiptOutcome === null ? [] : afterTaken(progress.receiptOutcome, false, error)
    case "SENDING":
      // The answer of a request under way will say more; an attempt in doubt is settled by the first such receipt.
      return progress.phase === "unresolved" && (taken || receiptOutcome !== null) ? takenAfterAll(message, error) : []
    case "QUEUED":
      return taken ? takenAfterAll(message, error) : []
    default:
      return []
  }
}

/** A receipt that contradicts the ending changes no message, but a person who could replay it must see it. */
const contradicts = ({ status, progress }: Message, receiptOutcome: Progress["receiptOutcome"]): boolean =>
  receiptOutcome !== null &&
  ((progress.receiptOutcome !== null && progress.receiptOutcome !== receiptOutcome) || denies(receiptOutcome, status))

export const denies = (receiptOutcome: Progress["receiptOutcome"], status: Status): boolean => {
  switch (status) {
    case "DELIVERED":
      return receiptOutcome === "failed"
    case "FAILED":
    case "DEAD_LETTER":
    case "CANCELLED":
    case "EXPIRED":
      return receiptOutcome === "delivered"
    default:
      return false
  }
}
