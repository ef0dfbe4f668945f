/** Facts and commands to write rules with: the shortest true sentence about a message, changed where a test cares. */
import { DateTime } from "effect"
import type { DeliveryError } from "../../../src/domain/delivery/DeliveryError.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import type { MessageCommand } from "../../../src/domain/message/decider.ts"
import type { FactOf, MessageFact, MessageQueued } from "../../../src/domain/message/facts.ts"

export const noon = DateTime.makeUnsafe("2026-01-01T12:00:00.000Z")
export const noonPlus = (milliseconds: number): DateTime.Utc => DateTime.add(noon, { milliseconds })

export const lane = DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01")
export const down: DeliveryError = { code: "http_503", message: "503 Service Unavailable", retryable: true }
export const gone: DeliveryError = { code: "http_410", message: "410 Gone", retryable: false }
export const doubtful: DeliveryError = {
  code: "timeout",
  message: "no answer after the body was sent",
  retryable: true
}
export const throttled: DeliveryError = { code: "130429", message: "rate limit hit", retryable: true }
export const unreachablePhone: DeliveryError = { code: "131026", message: "undeliverable", retryable: false }

export const queued = (change: Partial<MessageQueued> = {}): MessageQueued => ({
  type: "MessageQueued",
  orgId: OrgId.make("acme"),
  channel: "webhook",
  to: lane,
  destination: lane,
  eventType: "order.paid",
  templateCode: null,
  dossierId: null,
  orderingKey: null,
  correlationId: null,
  metadata: null,
  retry: { strategy: "schedule", waitsMs: [1_000, 5_000] },
  acceptedAt: noon,
  dueAt: noon,
  expiresAt: null,
  ...change
})

export const started = (attempt: number, epoch = 1): MessageFact => ({ type: "AttemptStarted", epoch, attempt })

export const succeeded = (
  attempt: number,
  change: Partial<FactOf<"AttemptSucceeded">> = {}
): FactOf<"AttemptSucceeded"> => ({
  type: "AttemptSucceeded",
  attempt,
  status: 200,
  providerMessageId: null,
  durationMs: 12,
  ...change
})

export const failed = (
  attempt: number,
  retryAt: DateTime.Utc | null,
  change: Partial<FactOf<"AttemptFailed">> = {}
): FactOf<"AttemptFailed"> => ({
  type: "AttemptFailed",
  attempt,
  error: down,
  status: 503,
  durationMs: 12,
  retryAt,
  ...change
})

export const deferred = (
  attempt: number,
  dueAt: DateTime.Utc,
  change: Partial<FactOf<"AttemptDeferred">> = {}
): FactOf<"AttemptDeferred"> => ({
  type: "AttemptDeferred",
  attempt,
  error: throttled,
  status: 400,
  durationMs: 12,
  dueAt,
  ...change
})

export const abandoned = (attempt: number, retryAt: DateTime.Utc | null): MessageFact => ({
  type: "AttemptAbandoned",
  attempt,
  reason: "the worker went away",
  retryAt
})

export const unresolved = (attempt: number, reconcileAt = noonPlus(60_000)): MessageFact => ({
  type: "AttemptUnresolved",
  attempt,
  error: doubtful,
  durationMs: 30_000,
  reconcileAt
})

export const delivered = (proof: "response" | "receipt"): MessageFact => ({ type: "MessageDelivered", proof })

export const refusedForGood = (by: "response" | "receipt", error = gone): MessageFact => ({
  type: "MessageFailed",
  by,
  error
})

export const deadLettered = (
  reason: FactOf<"MessageDeadLettered">["reason"] = "attempts used up",
  error = down
): MessageFact => ({ type: "MessageDeadLettered", reason, error })

export const cancelled: MessageFact = { type: "MessageCancelled", reason: null }
export const expired = (expiresAt: DateTime.Utc): MessageFact => ({ type: "MessageExpired", expiresAt })
export const replayed = (epoch: number, replayedAt = noonPlus(3_600_000)): MessageFact => ({
  type: "MessageReplayed",
  epoch,
  replayedAt,
  reason: null,
  edited: false,
  replayId: null
})
export const erased: MessageFact = { type: "MessageBodyErased", reason: null }

export const received = (
  receipt: FactOf<"ReceiptRecorded">["receipt"],
  change: Partial<FactOf<"ReceiptRecorded">> = {}
): FactOf<"ReceiptRecorded"> => ({
  type: "ReceiptRecorded",
  receipt,
  providerMessageId: "wamid.1",
  epoch: 1,
  attempt: null,
  reportedAt: noon,
  error: receipt === "failed" ? unreachablePhone : null,
  contradicts: false,
  ...change
})

/** Histories that end in each status, as short as they come. */
export const endings = {
  DELIVERED: [queued(), started(1), succeeded(1), delivered("response")],
  FAILED: [queued(), started(1), failed(1, null, { error: gone, status: 410 }), refusedForGood("response")],
  DEAD_LETTER: [
    queued({ retry: { strategy: "fixed", baseMs: 0, attemptsMax: 1 } }),
    started(1),
    failed(1, null),
    deadLettered()
  ],
  CANCELLED: [queued(), cancelled],
  EXPIRED: [queued({ expiresAt: noon }), expired(noon)]
} as const satisfies Record<string, ReadonlyArray<MessageFact>>

/** One history for every status a message can be in. */
export const histories = {
  QUEUED: [queued()],
  SENDING: [queued(), started(1)],
  SENT: [queued(), started(1), succeeded(1)],
  ...endings
} as const satisfies Record<string, ReadonlyArray<MessageFact>>

export const outcomes = {
  accepted: (change: Partial<Extract<AttemptOutcome, { type: "Accepted" }>> = {}): AttemptOutcome => ({
    type: "Accepted",
    status: 200,
    providerMessageId: null,
    delivered: true,
    durationMs: 12,
    ...change
  }),
  refused: (): AttemptOutcome => ({ type: "Refused", error: gone, status: 410, durationMs: 12 }),
  unreachable: (retryAfterMs: number | null = null): AttemptOutcome => ({
    type: "Unreachable",
    error: down,
    status: 503,
    retryAfterMs,
    durationMs: 12
  }),
  deferred: (afterMs = 30_000, scope: "message" | "lane" | "circuit" = "message"): AttemptOutcome => ({
    type: "Deferred",
    error: throttled,
    status: 400,
    scope,
    afterMs,
    durationMs: 12
  }),
  unknown: (reconcileAfterMs: number | null = 60_000): AttemptOutcome => ({
    type: "Unknown",
    error: doubtful,
    status: null,
    reconcileAfterMs,
    durationMs: 30_000
  })
}

export const startAttempt = (now = noon): MessageCommand => ({ type: "StartAttempt", now })

export const settle = (attempt: number, outcome: AttemptOutcome, now = noon, die = 0): MessageCommand => ({
  type: "SettleAttempt",
  attempt,
  outcome,
  now,
  die
})

export const abandon = (attempt: number, now = noon, die = 0): MessageCommand => ({
  type: "AbandonAttempt",
  attempt,
  reason: "the worker went away",
  now,
  die
})

export const cancel: MessageCommand = { type: "CancelMessage", reason: null }
export const replayMessage = (now = noonPlus(3_600_000), edited = false): MessageCommand => ({
  type: "ReplayMessage",
  now,
  reason: null,
  edited
})
export const erase: MessageCommand = { type: "EraseBody", reason: null }

export const recordReceipt = (
  receipt: FactOf<"ReceiptRecorded">["receipt"],
  providerMessageId: string | null = "wamid.1",
  about: { readonly epoch?: number | null; readonly attempt?: number | null } = {}
): MessageCommand => ({
  type: "RecordReceipt",
  receipt,
  providerMessageId,
  epoch: about.epoch ?? null,
  attempt: about.attempt ?? null,
  reportedAt: noon,
  error: receipt === "failed" ? unreachablePhone : null
})
