/**
 * The law of a message as data: which fact may follow which, and nothing else.
 *
 * No `invoke`, no `spawn`, no `after`: work is started by the application and time arrives inside
 * facts (`retryAt`, `reconcileAt`), so a replay needs neither a clock nor a running actor.
 */
import type { DateTime } from "effect"
import { assign, setup } from "xstate"
import type { DestinationId } from "../ids.ts"
import { attemptsMaxOf, presets, type RetryPolicy } from "../retry.ts"
import type { FactOf, MessageFact } from "./facts.ts"

/** What the law must remember to judge the next fact. Nothing that only a reader wants to see. */
export interface Progress {
  readonly destination: DestinationId | null
  readonly retry: RetryPolicy
  readonly attemptsMax: number
  /** When this epoch was opened; the age limit counts from here. */
  readonly openedAt: DateTime.Utc | null
  /** When the message next wants attention: an attempt, an expiry or a reconciliation. */
  readonly dueAt: DateTime.Utc | null
  readonly expiresAt: DateTime.Utc | null
  readonly epoch: number
  readonly attempt: number
  /** Of the last attempt of this epoch. `settled` means closed with no attempt left. */
  readonly phase: "none" | "open" | "unresolved" | "settled"
  /** The first receipt that decides: later ones that say otherwise are kept but change nothing. */
  readonly verdict: "delivered" | "failed" | null
  /** Receipts seen in this epoch, so that a repeated one adds no fact. */
  readonly receipts: ReadonlyArray<string>
}

const empty: Progress = {
  destination: null,
  retry: presets.webhook,
  attemptsMax: 0,
  openedAt: null,
  dueAt: null,
  expiresAt: null,
  epoch: 0,
  attempt: 0,
  phase: "none",
  verdict: null,
  receipts: []
}

interface Step<T extends MessageFact["type"]> {
  readonly context: Progress
  readonly event: FactOf<T>
}

const hasOpenAttempt = (context: Progress, attempt: number) =>
  context.attempt === attempt && (context.phase === "open" || context.phase === "unresolved")

export const receiptKey = (receipt: FactOf<"ReceiptRecorded">): string =>
  `${receipt.receipt}:${receipt.providerMessageId ?? ""}`

/** Judgements about one fact on one progress. Each is a sentence of the law. */
const guards = {
  isNextAttempt: ({ context, event }: Step<"AttemptStarted">) =>
    event.epoch === context.epoch && event.attempt === context.attempt + 1 && event.attempt <= context.attemptsMax,
  closesOpenAttempt: ({ context, event }: Step<"AttemptSucceeded">) => hasOpenAttempt(context, event.attempt),
  leavesAnAttempt: ({ context, event }: Step<"AttemptFailed" | "AttemptAbandoned">) =>
    hasOpenAttempt(context, event.attempt) && event.retryAt !== null && event.attempt < context.attemptsMax,
  leavesNoAttempt: ({ context, event }: Step<"AttemptFailed" | "AttemptAbandoned">) =>
    hasOpenAttempt(context, event.attempt) && event.retryAt === null,
  isFirstDoubt: ({ context, event }: Step<"AttemptUnresolved">) =>
    context.attempt === event.attempt && context.phase === "open",
  isSettled: ({ context }: Step<"MessageFailed" | "MessageDeadLettered">) => context.phase === "settled",
  isByReceipt: ({ event }: Step<"MessageFailed">) => event.by === "receipt",
  isNextEpoch: ({ context, event }: Step<"MessageReplayed">) => event.epoch === context.epoch + 1,
  isNewReceipt: ({ context, event }: Step<"ReceiptRecorded">) => !context.receipts.includes(receiptKey(event))
}

/** What a fact adds to the progress. */
const changes = {
  open: ({ event }: Step<"MessageQueued">): Partial<Progress> => ({
    destination: event.destination,
    retry: event.retry,
    attemptsMax: attemptsMaxOf(event.retry),
    openedAt: event.acceptedAt,
    dueAt: event.dueAt,
    expiresAt: event.expiresAt,
    epoch: 1
  }),
  begin: ({ event }: Step<"AttemptStarted">): Partial<Progress> => ({
    attempt: event.attempt,
    phase: "open",
    dueAt: null
  }),
  waitForRetry: ({ event }: Step<"AttemptFailed" | "AttemptAbandoned">): Partial<Progress> => ({
    phase: "none",
    dueAt: event.retryAt
  }),
  settle: (): Partial<Progress> => ({ phase: "settled", dueAt: null }),
  doubt: ({ event }: Step<"AttemptUnresolved">): Partial<Progress> => ({
    phase: "unresolved",
    dueAt: event.reconcileAt
  }),
  reopen: ({ event }: Step<"MessageReplayed">): Partial<Progress> => ({
    epoch: event.epoch,
    attempt: 0,
    phase: "none",
    openedAt: event.replayedAt,
    dueAt: event.replayedAt,
    // The wish not to be late belonged to the run that ended; whoever replays wants it sent.
    expiresAt: null,
    verdict: null,
    receipts: []
  }),
  remember: ({ context, event }: Step<"ReceiptRecorded">): Partial<Progress> => ({
    receipts: [...context.receipts, receiptKey(event)],
    verdict:
      context.verdict ??
      (event.receipt === "failed"
        ? "failed"
        : event.receipt === "delivered" || event.receipt === "read"
          ? "delivered"
          : null)
  })
}

/** XState types a guard by the union of all events; each of ours is only ever asked about its own. */
type AnyStep = { readonly context: Progress; readonly event: MessageFact }
const guard = <T extends MessageFact["type"]>(judge: (step: Step<T>) => boolean) =>
  judge as unknown as (step: AnyStep) => boolean
const change = <T extends MessageFact["type"]>(apply: (step: Step<T>) => Partial<Progress>) =>
  assign<Progress, MessageFact, undefined, MessageFact, never>(apply as unknown as (step: AnyStep) => Partial<Progress>)

const keepReceipt = { guard: "isNewReceipt", actions: "remember" } as const

export const messageMachine = setup({
  types: { context: {} as Progress, events: {} as MessageFact },
  guards: {
    isNextAttempt: guard(guards.isNextAttempt),
    closesOpenAttempt: guard(guards.closesOpenAttempt),
    leavesAnAttempt: guard(guards.leavesAnAttempt),
    leavesNoAttempt: guard(guards.leavesNoAttempt),
    isFirstDoubt: guard(guards.isFirstDoubt),
    isSettled: guard(guards.isSettled),
    isByReceipt: guard(guards.isByReceipt),
    isNextEpoch: guard(guards.isNextEpoch),
    isNewReceipt: guard(guards.isNewReceipt)
  },
  actions: {
    open: change(changes.open),
    begin: change(changes.begin),
    waitForRetry: change(changes.waitForRetry),
    settle: change(changes.settle),
    doubt: change(changes.doubt),
    reopen: change(changes.reopen),
    remember: change(changes.remember)
  }
}).createMachine({
  id: "message",
  context: empty,
  initial: "NEW",
  states: {
    NEW: {
      on: { MessageQueued: { target: "QUEUED", actions: "open" } }
    },
    QUEUED: {
      on: {
        AttemptStarted: { target: "SENDING", guard: "isNextAttempt", actions: "begin" },
        MessageCancelled: "CANCELLED",
        MessageExpired: "EXPIRED",
        ReceiptRecorded: keepReceipt
      }
    },
    SENDING: {
      on: {
        AttemptSucceeded: { target: "SENT", guard: "closesOpenAttempt", actions: "settle" },
        AttemptFailed: [
          { target: "QUEUED", guard: "leavesAnAttempt", actions: "waitForRetry" },
          { guard: "leavesNoAttempt", actions: "settle" }
        ],
        AttemptAbandoned: [
          { target: "QUEUED", guard: "leavesAnAttempt", actions: "waitForRetry" },
          { guard: "leavesNoAttempt", actions: "settle" }
        ],
        AttemptUnresolved: { guard: "isFirstDoubt", actions: "doubt" },
        MessageFailed: { target: "FAILED", guard: "isSettled" },
        MessageDeadLettered: { target: "DEAD_LETTER", guard: "isSettled" },
        ReceiptRecorded: keepReceipt
      }
    },
    SENT: {
      on: {
        MessageDelivered: "DELIVERED",
        MessageFailed: { target: "FAILED", guard: "isByReceipt" },
        ReceiptRecorded: keepReceipt
      }
    },
    DELIVERED: { on: { ReceiptRecorded: keepReceipt } },
    FAILED: {
      on: {
        MessageReplayed: { target: "QUEUED", guard: "isNextEpoch", actions: "reopen" },
        ReceiptRecorded: keepReceipt
      }
    },
    DEAD_LETTER: {
      on: {
        MessageReplayed: { target: "QUEUED", guard: "isNextEpoch", actions: "reopen" },
        ReceiptRecorded: keepReceipt
      }
    },
    CANCELLED: { on: { ReceiptRecorded: keepReceipt } },
    EXPIRED: { on: { ReceiptRecorded: keepReceipt } }
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
