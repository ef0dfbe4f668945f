/**
 * The law of a message as data: which fact may follow which. No `invoke`, `spawn` or `after`: the application starts
 * work and time arrives inside facts (`retryAt`, `reconcileAt`), so a replay needs neither a clock nor a running actor.
 */
import { DateTime } from "effect"
import { setup } from "xstate"
import { attemptsMaxOf, presets, type RetryPolicy } from "../delivery/retry.ts"
import type { DestinationId } from "../ids.ts"
import { lawOf, type Step as On } from "../machine.ts"
import type { FactOf, MessageFact } from "./facts.ts"

export interface Progress {
  readonly destination: DestinationId | null
  readonly line: string | null
  readonly retry: RetryPolicy
  readonly attemptsMax: number
  /** When this epoch was opened, or was first due where that was later; the age counts from here. */
  readonly openedAt: DateTime.Utc | null
  /** When the message next needs a worker: for an attempt, an expiry or a reconciliation. */
  readonly dueAt: DateTime.Utc | null
  readonly expiresAt: DateTime.Utc | null
  readonly epoch: number
  readonly attempt: number
  /** Nothing is left to send, until a replay brings another body. */
  readonly erased: boolean
  readonly dismissed: boolean
  /** Of the last attempt of this epoch. `settled` means closed with no attempt left. */
  readonly phase: "none" | "open" | "unresolved" | "settled"
  /** How many times in a row the last attempt was in doubt. */
  readonly doubts: number
  readonly deferrals: number
  /** A receipt says that the provider took an attempt of this epoch, whatever its answer said. */
  readonly taken: boolean
  /** The first receipt of this epoch that decides. Later ones that contradict it change nothing. */
  readonly receiptOutcome: "delivered" | "failed" | null
  /** Of all epochs, so that a repeated receipt adds no fact. */
  readonly receipts: ReadonlyArray<string>
  /** The provider's names for the message, each with its first epoch: a receipt may be about an earlier epoch. */
  readonly providerIds: ReadonlyArray<{ readonly id: string; readonly epoch: number }>
  readonly sentAs: string | null
}

const empty: Progress = {
  destination: null,
  line: null,
  retry: presets.webhook,
  attemptsMax: 0,
  openedAt: null,
  dueAt: null,
  expiresAt: null,
  epoch: 0,
  attempt: 0,
  erased: false,
  dismissed: false,
  phase: "none",
  doubts: 0,
  deferrals: 0,
  taken: false,
  receiptOutcome: null,
  receipts: [],
  providerIds: [],
  sentAs: null
}

/** Questions about one attempt; a provider that has no answer by then will not have one later. */
export const DOUBTS_MAX = 5

type Step<T extends MessageFact["type"]> = On<Progress, FactOf<T>>

const hasOpenAttempt = (context: Progress, attempt: number) =>
  context.attempt === attempt && (context.phase === "open" || context.phase === "unresolved")

/** Abandoning an attempt in doubt would send the message again blindly. */
const mayEndBadly = (context: Progress, event: FactOf<"AttemptFailed" | "AttemptAbandoned">) =>
  hasOpenAttempt(context, event.attempt) && !(event.type === "AttemptAbandoned" && context.phase === "unresolved")

type Receipt = FactOf<"ReceiptRecorded">

export const receiptKey = (
  { epoch }: Progress,
  receipt: Pick<Receipt, "receipt" | "epoch" | "providerMessageId">
): string => `${receipt.epoch ?? epoch}:${receipt.receipt}:${receipt.providerMessageId ?? ""}`

/**
 * The outcome that a receipt of this epoch settles. `failed` is about the attempt that it names, or else the last one,
 * and settles nothing when that attempt is known to have failed.
 */
export const decides = (
  { attempt, phase, sentAs }: Progress,
  receipt: Pick<Receipt, "receipt" | "attempt" | "providerMessageId">
): Progress["receiptOutcome"] => {
  switch (receipt.receipt) {
    case "sent":
      return null
    case "delivered":
    case "read":
      return "delivered"
    case "failed":
      if (sentAs !== null && receipt.providerMessageId !== null) {
        return receipt.providerMessageId === sentAs ? "failed" : null
      }
      return phase !== "none" && (receipt.attempt ?? attempt) === attempt ? "failed" : null
  }
}

const adopt = (known: Progress["providerIds"], id: string | null, epoch: number): Progress["providerIds"] =>
  id === null || known.some((other) => other.id === id) ? known : [...known, { id, epoch }]

const guards = {
  isNextAttempt: ({ context, event }: Step<"AttemptStarted">) =>
    event.epoch === context.epoch && event.attempt === context.attempt + 1 && event.attempt <= context.attemptsMax,
  closesOpenAttempt: ({ context, event }: Step<"AttemptSucceeded">) => hasOpenAttempt(context, event.attempt),
  /** The attempt was recorded as failed, and a receipt says that it was taken. */
  isProven: ({ context, event }: Step<"AttemptSucceeded">) => context.taken && context.attempt === event.attempt,
  leavesAnAttempt: ({ context, event }: Step<"AttemptFailed" | "AttemptAbandoned">) =>
    mayEndBadly(context, event) && event.retryAt !== null && event.attempt < context.attemptsMax,
  leavesNoAttempt: ({ context, event }: Step<"AttemptFailed" | "AttemptAbandoned">) =>
    mayEndBadly(context, event) && event.retryAt === null,
  /** An attempt in doubt may have been taken: a deferral does not prove the opposite. */
  isDeferred: ({ context, event }: Step<"AttemptDeferred">) =>
    context.attempt === event.attempt && context.phase === "open",
  mayBeDoubted: ({ context, event }: Step<"AttemptUnresolved">) =>
    hasOpenAttempt(context, event.attempt) && context.doubts < DOUBTS_MAX,
  isSettled: ({ context }: Step<"MessageFailed" | "MessageDeadLettered">) => context.phase === "settled",
  isTooOld: ({ event }: Step<"MessageDeadLettered">) => event.reason === "too old",
  isByReceipt: ({ event }: Step<"MessageFailed">) => event.by === "receipt",
  isNextEpoch: ({ context, event }: Step<"MessageReplayed">) =>
    event.epoch === context.epoch + 1 && (event.edited || !context.erased),
  isSooner: ({ context, event }: Step<"MessageHurried">) =>
    context.dueAt !== null && DateTime.isLessThan(event.dueAt, context.dueAt),
  isNotDismissed: ({ context }: Step<"MessageDismissed">) => !context.dismissed,
  isNotErased: ({ context }: Step<"MessageBodyErased">) => !context.erased,
  isNewReceipt: ({ context, event }: Step<"ReceiptRecorded">) => !context.receipts.includes(receiptKey(context, event))
}

const changes = {
  open: ({ event }: Step<"MessageQueued">): Partial<Progress> => ({
    destination: event.destination,
    line: event.line ?? null,
    retry: event.retry,
    attemptsMax: attemptsMaxOf(event.retry),
    openedAt: DateTime.max(event.acceptedAt, event.dueAt),
    dueAt: event.dueAt,
    expiresAt: event.expiresAt,
    epoch: 1
  }),
  begin: ({ event }: Step<"AttemptStarted">): Partial<Progress> => ({
    attempt: event.attempt,
    phase: "open",
    doubts: 0,
    dueAt: null
  }),
  waitForRetry: ({ event }: Step<"AttemptFailed" | "AttemptAbandoned">): Partial<Progress> => ({
    phase: "none",
    dueAt: event.retryAt
  }),
  waitAsBefore: ({ context, event }: Step<"AttemptDeferred">): Partial<Progress> => ({
    attempt: event.attempt - 1,
    phase: "none",
    deferrals: context.deferrals + 1,
    dueAt: event.dueAt,
    receiptOutcome: context.receiptOutcome === "failed" ? null : context.receiptOutcome
  }),
  hurry: ({ context, event }: Step<"MessageHurried">): Partial<Progress> => ({
    dueAt: event.dueAt,
    openedAt: context.openedAt === null ? null : DateTime.min(context.openedAt, event.dueAt)
  }),
  dismiss: (): Partial<Progress> => ({ dismissed: true }),
  settle: (): Partial<Progress> => ({ phase: "settled", dueAt: null }),
  succeed: ({ context, event }: Step<"AttemptSucceeded">): Partial<Progress> => ({
    phase: "settled",
    dueAt: null,
    providerIds: adopt(context.providerIds, event.providerMessageId, context.epoch),
    sentAs: event.providerMessageId
  }),
  doubt: ({ context, event }: Step<"AttemptUnresolved">): Partial<Progress> => ({
    phase: "unresolved",
    doubts: context.doubts + 1,
    dueAt: event.reconcileAt
  }),
  reopen: ({ event }: Step<"MessageReplayed">): Partial<Progress> => ({
    epoch: event.epoch,
    attempt: 0,
    erased: false,
    dismissed: false,
    phase: "none",
    deferrals: 0,
    openedAt: event.replayedAt,
    dueAt: event.replayedAt,
    // The expiry belonged to the run that ended; a replay asks to send the message all the same.
    expiresAt: null,
    taken: false,
    receiptOutcome: null,
    sentAs: null
  }),
  erase: (): Partial<Progress> => ({ erased: true }),
  remember: ({ context, event }: Step<"ReceiptRecorded">): Partial<Progress> => {
    const epoch = event.epoch ?? context.epoch
    const kept = {
      receipts: [...context.receipts, receiptKey(context, event)],
      providerIds: adopt(context.providerIds, event.providerMessageId, epoch)
    }
    if (epoch !== context.epoch) return kept
    return {
      ...kept,
      // Before the first attempt the provider can't have taken anything, whatever the receipt says.
      taken: context.taken || (event.receipt !== "failed" && context.attempt > 0),
      receiptOutcome: context.receiptOutcome ?? decides(context, event)
    }
  }
}

const law = lawOf<Progress, MessageFact>()

const always = {
  MessageBodyErased: { guard: "isNotErased", actions: "erase" },
  ReceiptRecorded: { guard: "isNewReceipt", actions: "remember" }
} as const
const endsBadly = [
  { target: "QUEUED", guard: "leavesAnAttempt", actions: "waitForRetry" },
  { guard: "leavesNoAttempt", actions: "settle" }
] as const
const dead = {
  on: {
    MessageReplayed: { target: "QUEUED", guard: "isNextEpoch", actions: "reopen" },
    MessageDismissed: { guard: "isNotDismissed", actions: "dismiss" },
    ...always
  }
} as const

export const messageMachine = setup({
  types: { context: {} as Progress, events: {} as MessageFact },
  guards: law.guards(guards),
  actions: law.changes(changes)
}).createMachine({
  id: "message",
  context: empty,
  initial: "NEW",
  states: {
    NEW: { on: { MessageQueued: { target: "QUEUED", actions: "open" } } },
    QUEUED: {
      on: {
        AttemptStarted: { target: "SENDING", guard: "isNextAttempt", actions: "begin" },
        AttemptSucceeded: { target: "SENT", guard: "isProven", actions: "succeed" },
        MessageHurried: { guard: "isSooner", actions: "hurry" },
        MessageCancelled: "CANCELLED",
        MessageExpired: "EXPIRED",
        MessageDeadLettered: { target: "DEAD_LETTER", guard: "isTooOld", actions: "settle" },
        ...always
      }
    },
    SENDING: {
      on: {
        AttemptSucceeded: { target: "SENT", guard: "closesOpenAttempt", actions: "succeed" },
        AttemptFailed: endsBadly,
        AttemptDeferred: { target: "QUEUED", guard: "isDeferred", actions: "waitAsBefore" },
        AttemptAbandoned: endsBadly,
        AttemptUnresolved: { guard: "mayBeDoubted", actions: "doubt" },
        MessageFailed: { target: "FAILED", guard: "isSettled" },
        MessageDeadLettered: { target: "DEAD_LETTER", guard: "isSettled" },
        ...always
      }
    },
    SENT: {
      on: { MessageDelivered: "DELIVERED", MessageFailed: { target: "FAILED", guard: "isByReceipt" }, ...always }
    },
    DELIVERED: { on: always },
    FAILED: dead,
    DEAD_LETTER: dead,
    CANCELLED: { on: always },
    EXPIRED: { on: always }
  }
})

export const statuses = [
  "QUEUED",
  "SENDING",
  "SENT",
  "DELIVERED",
  "FAILED",
  "DEAD_LETTER",
  "CANCELLED",
  "EXPIRED"
] as const
export type MessageStatus = (typeof statuses)[number]
