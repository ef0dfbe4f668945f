/**
 * A message as the API shows it, folded from its stream alone, so lists, single reads and rebuilt projections agree.
 */
import { DateTime } from "effect"
import type { DeliveryError } from "../delivery/DeliveryError.ts"
import type { Exchange } from "../delivery/exchange.ts"
import type { ChannelName, DestinationId, EventId, MessageId, OrgId, ReplayId } from "../ids.ts"
import { denies, endsAt, evolve, initial } from "./decider.ts"
import { detailsOf, type MessageDetails, type MessageFact, type MessageQueued, type ReceiptStatus } from "./facts.ts"
import type { MessageStatus } from "./machine.ts"
import type { Message, Status } from "./transitions.ts"

/** A fact with its version and the time it was recorded. The time never decides order. */
export interface StoredFact {
  readonly version: number
  readonly at: DateTime.Utc
  readonly actor?: string | null
  readonly fact: MessageFact
}

export interface AttemptView {
  readonly epoch: number
  readonly number: number
  readonly startedAt: DateTime.Utc
  readonly endedAt: DateTime.Utc | null
  readonly outcome: "succeeded" | "failed" | "deferred" | "abandoned" | "unresolved" | null
  readonly error: DeliveryError | null
  readonly status: number | null
  readonly durationMs: number | null
  readonly exchange: Exchange | null
}

export const isDead = (status: Status): boolean => status === "FAILED" || status === "DEAD_LETTER"

export const endedWell = ["DELIVERED", "CANCELLED", "EXPIRED"] as const satisfies ReadonlyArray<Status>

export interface MessageView extends MessageDetails {
  readonly id: MessageId
  readonly version: number
  readonly orgId: OrgId
  readonly channel: ChannelName
  readonly to: string
  readonly destination: DestinationId
  readonly routingKey?: string
  readonly resendOf?: MessageId
  readonly test?: true
  readonly status: MessageStatus
  readonly epoch: number
  readonly attempts: number
  readonly attemptsMax: number
  readonly nextAttemptAt: DateTime.Utc | null
  readonly lastError: DeliveryError | null
  readonly providerMessageId: string | null
  /** The time before which its sender does not want it sent; null when it was due at once. */
  readonly deliverAt: DateTime.Utc | null
  readonly expiresAt: DateTime.Utc | null
  readonly endsAt: DateTime.Utc | null
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
  readonly lastAttemptAt: DateTime.Utc | null
  readonly endedAt: DateTime.Utc | null
  /** When it reached its recipient in this epoch; by a receipt, as the provider says. */
  readonly deliveredAt: DateTime.Utc | null
  /** When its recipient read it in this epoch, as the provider says. */
  readonly readAt: DateTime.Utc | null
  readonly bodyErased: boolean
  /** A provider's receipt says the opposite of the status. */
  readonly contradicted: boolean
  readonly dismissed?: boolean
  readonly replayId?: ReplayId
  readonly eventId?: EventId
}

export const timeline = (
  history: ReadonlyArray<StoredFact>
): { readonly message: Message; readonly steps: ReadonlyArray<StoredFact & { readonly status: Status }> } => {
  let message = initial
  const steps = history.map((stored) => {
    message = evolve(message, stored.fact)
    return { ...stored, status: message.status }
  })
  return { message, steps }
}

export const viewOf = (id: MessageId, history: ReadonlyArray<StoredFact>): MessageView | null => {
  const first = history[0]
  if (first === undefined || first.fact.type !== "MessageQueued") return null
  const { message } = timeline(history)
  const { progress } = message
  const queued = first.fact
  const last = history.at(-1)!
  return {
    id,
    version: last.version,
    orgId: queued.orgId,
    channel: queued.channel,
    to: queued.to,
    destination: queued.destination,
    ...(queued.routingKey !== undefined && { routingKey: queued.routingKey }),
    ...(queued.resendOf !== undefined && { resendOf: queued.resendOf }),
    ...(queued.test === true && { test: true }),
    status: message.status as MessageStatus,
    epoch: progress.epoch,
    attempts: progress.attempt,
    attemptsMax: progress.attemptsMax,
    nextAttemptAt: message.status === "QUEUED" ? progress.dueAt : null,
    lastError: lastErrorOf(history),
    providerMessageId: providerMessageIdOf(history, progress.epoch),
    ...detailsOf(queued),
    deliverAt: DateTime.isGreaterThan(queued.dueAt, queued.acceptedAt) ? queued.dueAt : null,
    expiresAt: progress.expiresAt,
    endsAt: endsAt(message),
    createdAt: first.at,
    updatedAt: last.at,
    lastAttemptAt: history.findLast(({ fact }) => fact.type === "AttemptStarted")?.at ?? null,
    endedAt: endedAtOf(history),
    deliveredAt: deliveredAtOf(history, progress.epoch),
    readAt: reportedAtOf(history, progress.epoch, ["read"]),
    bodyErased: progress.erased,
    contradicted:
      history.some(({ fact }) => fact.type === "ReceiptRecorded" && fact.contradicts) || isOverruled(message),
    ...(progress.dismissed && { dismissed: true }),
    ...replayIn(queued, history),
    ...(queued.eventId === undefined ? {} : { eventId: queued.eventId })
  }
}

const replayIn = (queued: MessageQueued, history: ReadonlyArray<StoredFact>): { readonly replayId?: ReplayId } => {
  const last = history.findLast(({ fact }) => fact.type === "MessageReplayed")?.fact
  const replayId = last?.type === "MessageReplayed" ? last.replayId : queued.replayId
  return replayId == null ? {} : { replayId }
}

/** A receipt came before the ending, contradicted nothing then, and the message ended otherwise. */
const isOverruled = ({ status, progress: { receiptOutcome } }: Message): boolean => denies(receiptOutcome, status)

const endedAtOf = (history: ReadonlyArray<StoredFact>): DateTime.Utc | null => {
  for (const { fact, at } of history.toReversed()) {
    if (endings.has(fact.type)) return at
    if (fact.type === "MessageReplayed") return null
  }
  return null
}

export const endings: ReadonlySet<MessageFact["type"]> = new Set([
  "MessageDelivered",
  "MessageFailed",
  "MessageDeadLettered",
  "MessageCancelled",
  "MessageExpired"
])

const errorOf = (fact: MessageFact): DeliveryError | null => {
  switch (fact.type) {
    case "AttemptFailed":
    case "AttemptDeferred":
    case "AttemptUnresolved":
    case "MessageFailed":
    case "MessageDeadLettered":
      return fact.error
    case "AttemptAbandoned":
      return { code: "abandoned", message: fact.reason, retryable: true }
    default:
      return null
  }
}

const lastErrorOf = (history: ReadonlyArray<StoredFact>): DeliveryError | null => {
  for (const { fact } of history.toReversed()) {
    if (fact.type === "AttemptSucceeded" || fact.type === "MessageDelivered") return null
    const error = errorOf(fact)
    if (error !== null) return error
  }
  return null
}

/** The provider's name for the message: from its answer, else from a receipt; until then the name of the last epoch. */
const providerMessageIdOf = (history: ReadonlyArray<StoredFact>, current: number): string | null => {
  let epoch = current
  let told: string | null = null
  for (const { fact } of history.toReversed()) {
    if (fact.type === "AttemptSucceeded" && fact.providerMessageId !== null) return fact.providerMessageId
    if (fact.type === "ReceiptRecorded" && (fact.epoch ?? epoch) === epoch) told ??= fact.providerMessageId
    if (fact.type !== "MessageReplayed") continue
    if (told !== null) return told
    epoch = fact.epoch - 1
  }
  return told
}

/** A provider may report `read` alone: it implies delivered. */
const deliveredAtOf = (history: ReadonlyArray<StoredFact>, current: number): DateTime.Utc | null => {
  const proven = history.findLast(({ fact }) => fact.type === "MessageDelivered" || fact.type === "MessageReplayed")
  if (proven?.fact.type !== "MessageDelivered") return null
  return (proven.fact.proof === "receipt" ? reportedAtOf(history, current, ["delivered", "read"]) : null) ?? proven.at
}

const reportedAtOf = (
  history: ReadonlyArray<StoredFact>,
  current: number,
  receipts: ReadonlyArray<ReceiptStatus>
): DateTime.Utc | null => {
  let epoch = 1
  for (const { fact } of history) {
    if (fact.type === "MessageReplayed") epoch = fact.epoch
    if (fact.type !== "ReceiptRecorded" || !receipts.includes(fact.receipt)) continue
    if ((fact.epoch ?? epoch) === current) return fact.reportedAt
  }
  return null
}

const outcomes = { AttemptSucceeded: "succeeded", AttemptFailed: "failed", AttemptDeferred: "deferred" } as const

export const attemptsOf = (history: ReadonlyArray<StoredFact>): ReadonlyArray<AttemptView> => {
  const attempts: Array<AttemptView> = []
  /** The last attempt with this number: earlier ones with it did not count. */
  const learn = (number: number, learnt: Partial<AttemptView>) => {
    const index = attempts.findLastIndex((attempt) => attempt.number === number)
    attempts[index] = { ...attempts[index]!, ...learnt }
  }
  for (const { fact, at } of history) {
    switch (fact.type) {
      case "AttemptStarted":
        attempts.push({
          epoch: fact.epoch,
          number: fact.attempt,
          startedAt: at,
          endedAt: null,
          outcome: null,
          error: null,
          status: null,
          durationMs: null,
          exchange: null
        })
        break
      case "AttemptSucceeded":
      case "AttemptFailed":
      case "AttemptDeferred": {
        const { status } = fact
        learn(fact.attempt, {
          endedAt: at,
          outcome: outcomes[fact.type],
          error: errorOf(fact),
          status,
          ...measuredIn(fact)
        })
        break
      }
      case "AttemptAbandoned":
        learn(fact.attempt, { endedAt: at, outcome: "abandoned", error: errorOf(fact) })
        break
      case "AttemptUnresolved":
        learn(fact.attempt, { outcome: "unresolved", error: fact.error, ...measuredIn(fact) })
        break
      default:
        break
    }
  }
  return attempts
}

/** A later settlement, such as an answer to a question or a receipt, measured something else. */
const measuredIn = ({ exchange, durationMs }: { readonly exchange?: Exchange; readonly durationMs: number }) =>
  exchange === undefined ? {} : { exchange, durationMs }
