/**
 * The second step of an attempt: one request through the message's channel. Nothing is sent unless the lease certainly
 * lasts by the monotonic clock, or the store has just said so, because this process may stand still at any moment. Left
 * is a standstill in the microseconds before the request is handed over, or while a connection is made, within the
 * destination's deadline.
 */
import { Clock, Effect } from "effect"
import { RECONCILE_AFTER_MS } from "../../domain/delivery/classify.ts"
import type { DeliveryError } from "../../domain/delivery/DeliveryError.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { Message } from "../../domain/message/transitions.ts"
import type { Reply } from "../ports/Channels.ts"
import type { ClaimedMessage, Queue } from "../ports/Queue.ts"
import { isSurelyHeld, type Lease } from "./lease.ts"
import { type Sender, Senders } from "./Senders.ts"

/** Null when the batch was taken over and nothing was sent. */
export const send = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  body: string | null,
  lease: Lease,
  message: Message,
  // Without a span of Posthaste the receiver joins its sender's trace.
  traceparent: string | undefined = claimed.queued.traceparent
) {
  const channel = (yield* Senders)[claimed.queued.channel]
  const { orgId, destination, to, eventType, templateCode, correlationId, routingKey, test } = claimed.queued
  const { epoch, attempt, phase, erased } = message.progress
  const about = {
    ...{ messageId: claimed.messageId, orgId, destination, epoch, attempt },
    ...{ to, eventType, templateCode, correlationId, ...(routingKey !== undefined && { routingKey }) },
    ...(test === true && { test }),
    ...(traceparent !== undefined && { traceparent })
  }
  if (phase === "unresolved") {
    const reconcile = channel?.reconcile
    if (reconcile === undefined) return unknown(nobodyToAsk, null)
    return yield* reconcile(about).pipe(orElse(unknown(ourFault, RECONCILE_AFTER_MS)))
  }
  if (channel === undefined)
    return notSent("channel_unavailable", `no ${claimed.queued.channel} channel is set up here`)
  // The message knows of an erasure after the claim.
  if (body === null || erased) return notSent("body_erased", "the body was erased before it could be sent")
  const dedupes = yield* channel.dedupes(orgId, destination)
  const failed = dedupes ? broken : unknown(ourFault, yield* doubtMsOf(channel, claimed.queued))
  // Without dropped duplicates the store is asked each time: a crash of the database may have shortened the lease.
  if (!dedupes && !(yield* isSurelyHeld(lease))) return null
  const clock = yield* Clock.Clock
  return yield* underLease(lease, clock, () => channel.send({ ...about, body }).pipe(orElse(failed)))
})

/** Sends in the same step that looks at the clock. Null when the lease was lost: nothing is sent then. */
const underLease = (
  lease: Lease,
  clock: Clock.Clock,
  request: () => Effect.Effect<Reply>
): Effect.Effect<Reply | null, never, Queue> =>
  Effect.suspend(() => {
    if (lease.lost) return Effect.succeed(null)
    if (lease.certainlyLasts(clock)) return request()
    return Effect.flatMap(isSurelyHeld(lease), (isHeld) =>
      isHeld ? underLease(lease, clock, request) : Effect.succeed(null)
    )
  })

export const doubtMsOf = (channel: Sender | undefined, { orgId, destination }: MessageQueued): Effect.Effect<number> =>
  channel?.doubtMs?.(orgId, destination) ?? Effect.succeed(RECONCILE_AFTER_MS)

/** A bug in a channel counts as a failure on our side. */
const orElse = (reply: Reply) =>
  Effect.catchDefect((defect: unknown) =>
    Effect.logError("a channel broke its promise not to fail", defect).pipe(Effect.as(reply))
  )

export const notSent = (code: string, message: string): Reply => ({
  outcome: { type: "Refused", error: { code, message, retryable: false }, status: null, durationMs: 0 },
  responseBody: null
})

const unknown = (error: DeliveryError, reconcileAfterMs: number | null): Reply => ({
  outcome: { type: "Unknown", error, status: null, reconcileAfterMs, durationMs: 0 },
  responseBody: null
})

const nobodyToAsk: DeliveryError = {
  code: "outcome_unknown",
  message: "the last attempt may have been taken, and the channel has nobody to ask",
  retryable: false
}

const ourFault: DeliveryError = { code: "channel_failed", message: "Posthaste failed while sending", retryable: true }

const broken: Reply = {
  outcome: { type: "Unreachable", error: ourFault, status: null, retryAfterMs: null, durationMs: 0 },
  responseBody: null
}
