/**
 * The actor: what happens to one message between its claim and its settlement.
 *
 *   start    `AttemptStarted` is committed, fenced by the claim, before any byte leaves
 *   send     one try through the message's channel
 *   settle   what came of it is committed
 *
 * Every other writer (cancel, receipt, a worker that took the batch over) meets the actor at the version
 * check: whoever loses reads again and decides again. A crash between two steps leaves an open attempt that
 * only the holder of the claim may close.
 */
import { DateTime, Duration, Effect, Random, Result } from "effect"
import { RECONCILE_AFTER_MS } from "../domain/classify.ts"
import { decide, replay } from "../domain/message/decider.ts"
import type { DeliveryError } from "../domain/message/facts.ts"
import { resume } from "../domain/message/resume.ts"
import type { Message } from "../domain/message/transitions.ts"
import { entryOf } from "./entry.ts"
import type { Holding } from "./holdings.ts"
import { Channels, type Reply } from "./ports/Channels.ts"
import {
  type Append,
  type AppendResult,
  type AttemptResponse,
  EventStore,
  type StreamVersion
} from "./ports/EventStore.ts"
import { type ClaimedMessage, Queue } from "./ports/Queue.ts"
import type { CircuitWatch } from "./watchCircuits.ts"

/** The message and the version it has; what the actor carries from step to step. */
interface Snapshot {
  readonly message: Message
  readonly version: StreamVersion
}

const RETRY_FIRST = Duration.millis(50)
const RETRY_MAX_MS = 2_000

/**
 * Ends when the message is settled, belongs to somebody else, or has nothing left to do. `GateClosed` says that
 * nothing was started because its destination may not be called now.
 */
export const deliver = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  holding: Holding,
  circuits: CircuitWatch,
  onSent: () => void
) {
  const started = yield* start(claimed, holding)
  if (started === "GateClosed") return started
  if (started === null) return circuits.saw(claimed, null)
  const reply = yield* send(claimed, holding, started.message)
  circuits.saw(claimed, reply.outcome)
  // The destination's slot is free from here on; the commit is our own affair.
  onSent()
  yield* settle(claimed, holding, started, reply)
})

/** The message with its attempt open, or why there is nothing to send. */
const start = Effect.fnUntraced(function* (claimed: ClaimedMessage, holding: Holding) {
  const store = yield* EventStore
  const known = resume(claimed.queued, claimed.epoch, claimed.attempt, claimed.version, claimed.dueAt)
  let snapshot: Snapshot = known === null ? yield* load(claimed) : { message: known, version: claimed.version }
  let loaded = known === null
  while (!holding.lost) {
    const { message, version } = snapshot
    if (message.status === "SENDING") {
      if (!isOursToFinish(message, claimed)) return null
      // One in doubt waits for its outcome, not for another start. An open one right after our claim is our own
      // start whose answer was lost, if the claim outlived the load: until then nobody else could start one.
      return message.progress.phase === "unresolved" || (yield* isStillHeld(holding)) ? snapshot : null
    }
    if (message.status !== "QUEUED" || (loaded && isElsewhere(message, claimed))) return null
    const now = yield* DateTime.now
    const decided = decide(message, { type: "StartAttempt", now })
    if (Result.isFailure(decided)) return null
    const { entry, after } = entryOf(claimed.messageId, message, version, decided.success, now, {
      fence: holding.batch,
      gate: { lane: claimed.lane, generation: claimed.pass.generation }
    })
    const result = yield* appendOne(store, entry)
    if (result?.type === "Appended") {
      return after.status === "SENDING" ? { message: after, version: result.version } : null
    }
    if (result?.type === "GateClosed") return result.type
    if (result?.type === "FenceLost") {
      holding.lose()
      return null
    }
    snapshot = yield* load(claimed)
    loaded = true
  }
  return null
})

/** Null when the store did not answer: it may or may not have been written. */
const appendOne = (store: EventStore["Service"], entry: Append): Effect.Effect<AppendResult | null> =>
  Effect.match(store.append([entry]), { onSuccess: (results) => results[0]!, onFailure: () => null })

/** Asks until the store answers: to take its silence for a no would leave the whole batch to its lease. */
const isStillHeld = Effect.fnUntraced(function* (holding: Holding) {
  const queue = yield* Queue
  for (let tries = 0; !holding.lost; tries++) {
    const renewed = yield* queue
      .renew([holding.batch], holding.lease)
      .pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(null)))
    if (renewed?.has(holding.batch)) return true
    if (renewed !== null) holding.lose()
    else yield* Effect.sleep(pause(tries))
  }
  return false
})

/** An epoch or attempt beyond the one we claimed: the message moved on and waits in the queue again. */
const isElsewhere = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch !== claimed.epoch || progress.attempt !== claimed.attempt

const isOursToFinish = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch === claimed.epoch && progress.attempt === claimed.attempt + 1 && isOpen(progress.phase)

const send = Effect.fnUntraced(function* (claimed: ClaimedMessage, holding: Holding, message: Message) {
  const channel = (yield* Channels)[claimed.queued.channel]
  const { orgId, destination, to, eventType, correlationId } = claimed.queued
  const { epoch, attempt, phase, erased } = message.progress
  const about = { messageId: claimed.messageId, orgId, destination, to, epoch, attempt, eventType, correlationId }
  if (phase === "unresolved") {
    return channel?.reconcile === undefined
      ? unknown(nobodyToAsk, null)
      : yield* channel.reconcile(about).pipe(orElse(unknown(ourFault, RECONCILE_AFTER_MS)))
  }
  if (channel === undefined)
    return notSent("channel_unavailable", `no ${claimed.queued.channel} channel is set up here`)
  // Erased after our claim, the message says so and not the claim.
  if (claimed.body === null || erased) return notSent("body_erased", "the body was erased before it could be sent")
  const dedupes = yield* channel.dedupes(orgId, destination)
  // We may have stood still since the start was committed, and somebody else have found out and sent it again.
  if (!dedupes && !(yield* isStillHeld(holding))) return unknown(ourFault, RECONCILE_AFTER_MS)
  return yield* channel
    .send({ ...about, body: claimed.body })
    .pipe(orElse(dedupes ? broken : unknown(ourFault, RECONCILE_AFTER_MS)))
})

/** A bug in a channel must not keep its message open: it counts as a try that failed on our side. */
const orElse = (reply: Reply) =>
  Effect.catchDefect((defect: unknown) =>
    Effect.logError("a channel broke its promise not to fail", defect).pipe(Effect.as(reply))
  )

const notSent = (code: string, message: string): Reply => ({
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

const settle = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  holding: Holding,
  started: Snapshot,
  { outcome, responseBody }: Reply
) {
  const store = yield* EventStore
  const { epoch, attempt } = started.message.progress
  const response: AttemptResponse | null =
    responseBody === null || responseBody === "" ? null : { epoch, attempt, body: responseBody }
  const die = (yield* Random.Random).nextDoubleUnsafe()
  let snapshot = started
  let tries = 0
  while (!holding.lost) {
    const now = yield* DateTime.now
    const decided = decide(snapshot.message, { type: "SettleAttempt", attempt, outcome, now, die })
    if (Result.isFailure(decided)) return
    const { entry } = entryOf(claimed.messageId, snapshot.message, snapshot.version, decided.success, now, {
      fence: holding.batch,
      // Erased while we were sending: the answer must not bring back what was to go.
      response: snapshot.message.progress.erased ? null : response
    })
    const result = yield* appendOne(store, entry)
    if (result?.type === "Appended") return
    if (result?.type === "FenceLost") return holding.lose()
    if (result === null) yield* Effect.sleep(pause(tries++))
    // A receipt came between, or our own settlement was written and its answer lost: the stream tells.
    snapshot = yield* load(claimed)
    const { progress } = snapshot.message
    if (progress.epoch !== epoch || progress.attempt !== attempt || !isOpen(progress.phase)) return
  }
})

const isOpen = (phase: Message["progress"]["phase"]) => phase === "open" || phase === "unresolved"

const pause = (tries: number) =>
  Duration.min(Duration.times(RETRY_FIRST, 2 ** Math.min(tries, 10)), Duration.millis(RETRY_MAX_MS))

/** Asks until the store answers: an actor that can't read has nothing better to do, and its lease bounds it. */
const load: (claimed: ClaimedMessage) => Effect.Effect<Snapshot, never, EventStore> = Effect.fnUntraced(function* ({
  messageId
}) {
  const store = yield* EventStore
  for (let tries = 0; ; tries++) {
    const stream = yield* store.load(messageId).pipe(Effect.catchTag("StoreUnavailable", () => Effect.succeed(null)))
    if (stream !== null) return { message: replay(stream.facts.map(({ fact }) => fact)), version: stream.version }
    yield* Effect.sleep(pause(tries))
  }
})
