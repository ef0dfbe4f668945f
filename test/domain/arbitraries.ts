/** Random facts, commands and the histories they make. */
import { DateTime, Result } from "effect"
import fc from "fast-check"
import type { DeliveryError } from "../../src/domain/delivery/DeliveryError.ts"
import type { AttemptOutcome } from "../../src/domain/delivery/outcome.ts"
import type { RetryPolicy } from "../../src/domain/delivery/retry.ts"
import { type ChannelName, DestinationId, OrgId, ReplayId } from "../../src/domain/ids.ts"
import { decide, evolve, initial, type MessageCommand } from "../../src/domain/message/decider.ts"
import type { MessageFact, MessageQueued } from "../../src/domain/message/facts.ts"
import type { Message } from "../../src/domain/message/transitions.ts"
import {
  abandon,
  cancel,
  doubtful,
  down,
  erase,
  gone,
  noon,
  noonPlus,
  queued,
  replayMessage,
  throttled
} from "./message/samples.ts"

const time = fc.integer({ min: 0, max: 200_000 }).map(noonPlus)
const maybeTime = fc.option(time)
/** Small numbers: they meet the attempts and epochs that are really there. */
const count = fc.integer({ min: 0, max: 4 })
const duration = fc.integer({ min: 0, max: 60_000 })
const text = fc.string({ unit: "grapheme" })
const maybeText = fc.option(text)
const filledText = fc.string({ unit: "grapheme", minLength: 1 })
const httpStatus = fc.option(fc.integer({ min: 100, max: 599 }))
const error: fc.Arbitrary<DeliveryError> = fc.record({ code: filledText, message: text, retryable: fc.boolean() })
const receiptKind = fc.constantFrom("sent", "delivered", "read", "failed")
const providerId = fc.constantFrom(null, "wamid.1", "wamid.2")

const limits = {
  attemptsMax: fc.integer({ min: 1, max: 4 }),
  ageMaxMs: fc.integer({ min: 0, max: 100_000 }),
  jitter: fc.constantFrom([0.5, 1.5] as const, [1, 1] as const)
}
const waits = fc.integer({ min: 0, max: 20_000 })
export const anyPolicy: fc.Arbitrary<RetryPolicy> = fc.oneof(
  fc.record(
    { strategy: fc.constant("schedule"), waitsMs: fc.array(waits, { minLength: 1, maxLength: 3 }), ...limits },
    { requiredKeys: ["strategy", "waitsMs"] }
  ),
  fc.record(
    {
      strategy: fc.constantFrom("exponential", "linear", "fixed"),
      baseMs: waits,
      capMs: waits,
      factor: fc.integer({ min: 1, max: 3 }),
      ...limits
    },
    { requiredKeys: ["strategy", "baseMs"] }
  )
)

/** Any message at all, with every field set or not. */
const anyQueued: fc.Arbitrary<MessageQueued> = fc.record({
  type: fc.constant("MessageQueued"),
  orgId: fc.constantFrom(OrgId.make("acme"), OrgId.make("globex")),
  channel: fc.constantFrom("webhook", "whatsapp", "amqp", "http"),
  to: text,
  destination: fc.uuid().map((id) => DestinationId.make(id)),
  eventType: maybeText,
  templateCode: maybeText,
  dossierId: maybeText,
  orderingKey: maybeText,
  correlationId: maybeText,
  metadata: fc.option(fc.dictionary(fc.string(), text, { noNullPrototype: true })),
  retry: anyPolicy,
  acceptedAt: time,
  dueAt: time,
  expiresAt: maybeTime
})

/** A message as the laws need it: one lane, and times near noon. */
export const someQueued: fc.Arbitrary<MessageQueued> = fc
  .record({
    channel: fc.constantFrom("webhook", "whatsapp", "whatsapp"),
    retry: anyPolicy,
    dueAt: fc.oneof({ arbitrary: fc.constant(noon), weight: 3 }, { arbitrary: time, weight: 1 }),
    expiresAt: fc.oneof({ arbitrary: fc.constant(null), weight: 3 }, { arbitrary: time, weight: 1 })
  })
  .map(queued)

export const anyFact: fc.Arbitrary<MessageFact> = fc.oneof(
  anyQueued,
  fc.record({ type: fc.constant("AttemptStarted"), epoch: count, attempt: count }),
  fc.record({
    type: fc.constant("AttemptSucceeded"),
    attempt: count,
    status: httpStatus,
    providerMessageId: maybeText,
    durationMs: duration
  }),
  fc.record({
    type: fc.constant("AttemptFailed"),
    attempt: count,
    error,
    status: httpStatus,
    durationMs: duration,
    retryAt: maybeTime
  }),
  fc.record({
    type: fc.constant("AttemptDeferred"),
    attempt: count,
    error,
    status: httpStatus,
    durationMs: duration,
    dueAt: time
  }),
  fc.record({ type: fc.constant("AttemptAbandoned"), attempt: count, reason: filledText, retryAt: maybeTime }),
  fc.record({
    type: fc.constant("AttemptUnresolved"),
    attempt: count,
    error,
    durationMs: duration,
    reconcileAt: time
  }),
  fc.record({ type: fc.constant("MessageDelivered"), proof: fc.constantFrom("response", "receipt") }),
  fc.record({ type: fc.constant("MessageFailed"), by: fc.constantFrom("response", "receipt"), error }),
  fc.record({
    type: fc.constant("MessageDeadLettered"),
    reason: fc.constantFrom("attempts used up", "too old to retry", "outcome unknown", "too old"),
    error
  }),
  fc.record({ type: fc.constant("MessageHurried"), dueAt: time }),
  fc.record({ type: fc.constant("MessageDismissed"), reason: maybeText }),
  fc.record({ type: fc.constant("MessageCancelled"), reason: maybeText }),
  fc.record({ type: fc.constant("MessageExpired"), expiresAt: time }),
  fc.record({
    type: fc.constant("MessageReplayed"),
    epoch: count,
    replayedAt: time,
    reason: maybeText,
    edited: fc.boolean(),
    replayId: fc.option(fc.uuid().map((id) => ReplayId.make(id)))
  }),
  fc.record({ type: fc.constant("MessageBodyErased"), reason: maybeText }),
  fc.record({
    type: fc.constant("ReceiptRecorded"),
    receipt: receiptKind,
    providerMessageId: providerId,
    epoch: fc.option(count),
    attempt: fc.option(count),
    reportedAt: time,
    error: fc.option(error),
    contradicts: fc.boolean()
  })
)

/** What somebody wants of a message; which attempt that means depends on when it is asked. */
export interface Wish {
  readonly kind:
    | "queue"
    | "start"
    | "settle"
    | "abandon"
    | "end"
    | "hurry"
    | "dismiss"
    | "cancel"
    | "replay"
    | "erase"
    | "receipt"
  readonly elapsedMs: number
  readonly die: number
  /** Mostly 0: the attempt that is open. */
  readonly attemptOff: number
  readonly outcome: AttemptOutcome
  readonly receipt: "sent" | "delivered" | "read" | "failed"
  readonly providerMessageId: string | null
  /** A receipt says which epoch and attempt it is about, maybe wrongly. */
  readonly about: { readonly epoch: number | null; readonly attempt: number | null }
  /** A replay brings another body. */
  readonly edited: boolean
}

const outcome: fc.Arbitrary<AttemptOutcome> = fc.oneof(
  fc.record({
    type: fc.constant("Accepted"),
    status: httpStatus,
    providerMessageId: providerId,
    delivered: fc.boolean(),
    durationMs: duration
  }),
  fc.record({ type: fc.constant("Refused"), error: fc.constant(gone), status: httpStatus, durationMs: duration }),
  fc.record({
    type: fc.constant("Unreachable"),
    error: fc.constant(down),
    status: httpStatus,
    retryAfterMs: fc.option(waits),
    durationMs: duration
  }),
  fc.record({
    type: fc.constant("Deferred"),
    error: fc.constant(throttled),
    status: httpStatus,
    scope: fc.constantFrom("message", "lane", "circuit"),
    afterMs: waits,
    durationMs: duration
  }),
  fc.record({
    type: fc.constant("Unknown"),
    error: fc.constant(doubtful),
    status: fc.constantFrom(null, 502),
    reconcileAfterMs: fc.option(waits),
    durationMs: duration
  })
)

const wish: fc.Arbitrary<Wish> = fc.record({
  kind: fc.oneof(
    { arbitrary: fc.constant("start"), weight: 8 },
    { arbitrary: fc.constant("settle"), weight: 8 },
    { arbitrary: fc.constant("receipt"), weight: 3 },
    { arbitrary: fc.constant("replay"), weight: 3 },
    { arbitrary: fc.constant("abandon"), weight: 3 },
    { arbitrary: fc.constant("end"), weight: 2 },
    { arbitrary: fc.constant("hurry"), weight: 2 },
    { arbitrary: fc.constant("dismiss"), weight: 1 },
    { arbitrary: fc.constant("cancel"), weight: 1 },
    { arbitrary: fc.constant("erase"), weight: 1 },
    { arbitrary: fc.constant("queue"), weight: 1 }
  ),
  elapsedMs: fc.integer({ min: 0, max: 10_000 }),
  die: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  attemptOff: fc.oneof({ arbitrary: fc.constant(0), weight: 9 }, { arbitrary: fc.constantFrom(-1, 1), weight: 1 }),
  outcome,
  receipt: receiptKind,
  providerMessageId: providerId,
  about: fc.record({ epoch: fc.option(count), attempt: fc.option(count) }),
  edited: fc.boolean()
})

/** A webhook's receiver drops duplicates by id: not knowing is an ordinary failure there. */
const outcomeOn = (channel: ChannelName, outcome: AttemptOutcome): AttemptOutcome =>
  channel === "webhook" && outcome.type === "Unknown"
    ? { type: "Unreachable", error: doubtful, status: null, retryAfterMs: null, durationMs: outcome.durationMs }
    : outcome

const commandOf = (message: Message, request: MessageQueued, wish: Wish, now: DateTime.Utc): MessageCommand => {
  const attempt = message.progress.attempt + wish.attemptOff
  switch (wish.kind) {
    case "queue":
      return { type: "QueueMessage", request }
    case "start":
      return { type: "StartAttempt", now }
    case "settle":
      return { type: "SettleAttempt", attempt, outcome: outcomeOn(request.channel, wish.outcome), now, die: wish.die }
    case "abandon":
      return abandon(attempt, now, wish.die)
    case "end":
      return { type: "EndMessage", now }
    case "hurry":
      return { type: "HurryMessage", now }
    case "dismiss":
      return { type: "DismissMessage", reason: null }
    case "cancel":
      return cancel
    case "replay":
      return replayMessage(now, wish.edited)
    case "erase":
      return erase
    case "receipt":
      return {
        type: "RecordReceipt",
        receipt: wish.receipt,
        providerMessageId: wish.providerMessageId,
        ...wish.about,
        reportedAt: now,
        error: wish.receipt === "failed" ? gone : null
      }
  }
}

/** One command, what was decided, and the message on both sides of it. */
export interface Turn {
  readonly now: DateTime.Utc
  readonly command: MessageCommand
  readonly before: Message
  readonly facts: ReadonlyArray<MessageFact>
  readonly after: Message
}

/** The life of one message under random commands. Refused commands leave a turn without facts. */
export interface Life {
  readonly turns: ReadonlyArray<Turn>
  readonly history: ReadonlyArray<MessageFact>
  readonly message: Message
}

const live = (request: MessageQueued, wishes: ReadonlyArray<Wish>): Life => {
  const turns: Array<Turn> = []
  let now = noon
  let message = initial
  const take = (command: MessageCommand) => {
    const before = message
    const decision = decide(message, command)
    const facts = Result.isSuccess(decision) ? decision.success : []
    message = facts.reduce(evolve, message)
    turns.push({ now, command, before, facts, after: message })
  }
  take({ type: "QueueMessage", request })
  for (const wish of wishes) {
    now = DateTime.add(now, { milliseconds: wish.elapsedMs })
    take(commandOf(message, request, wish, now))
  }
  return { turns, history: turns.flatMap(({ facts }) => facts), message }
}

export const anyLife: fc.Arbitrary<Life> = fc
  .tuple(someQueued, fc.array(wish, { maxLength: 40, size: "max" }))
  .map(([request, wishes]) => live(request, wishes))
