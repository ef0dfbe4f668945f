/**
 * The actor: takes one message from its claim to its settlement.
 *
 *   start    `AttemptStarted` is committed, fenced by the claim, before any byte leaves
 *   send     one attempt through the message's channel, in a slot of its destination's rate limit
 *   settle   the outcome is committed
 *
 * When the destination defers its whole lane, or says that it is gone, its lane is closed first, so that no other message
 * goes out meanwhile.
 *
 * Every other writer (a cancellation, a receipt, a worker that took the batch over) meets the actor at the version
 * check: the loser loads the message and decides again. A crash between two steps leaves an open attempt that only the
 * holder of the claim may close.
 *
 * This process may stand still at any moment, and others take its messages over. So nothing is sent unless the lease certainly
 * lasts by the monotonic clock, or the store has just said so. What remains is a process that stands still after that: in the
 * microseconds before it hands the request over, or while a connection is made, for which the destination's deadline goes on.
 */
import { Clock, DateTime, Duration, Effect, identity, Random, Result } from "effect"
import { RECONCILE_AFTER_MS } from "../../domain/delivery/classify.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import { laneWaitMs } from "../../domain/delivery/retry.ts"
import type { DestinationId } from "../../domain/ids.ts"
import { decide, replay } from "../../domain/message/decider.ts"
import type { DeliveryError, MessageQueued } from "../../domain/message/facts.ts"
import { resume } from "../../domain/message/resume.ts"
import type { Message } from "../../domain/message/transitions.ts"
import {
  appendToMessage,
  command,
  type Decision,
  type Overtaken,
  type Patience,
  storePauses,
  whileUnavailable
} from "../command.ts"
import { cancelReason, objectionTo } from "../consents/consents.ts"
import { entryOf } from "../entry.ts"
import type { StoreUnavailable } from "../errors.ts"
import { Bodies } from "../ports/Bodies.ts"
import type { Channels, Reply } from "../ports/Channels.ts"
import {
  type Append,
  type AppendResult,
  type AttemptResponse,
  EventStore,
  type Stream,
  type StreamVersion
} from "../ports/EventStore.ts"
import type { Journals } from "../ports/Journals.ts"
import { type ClaimedMessage, Queue, type Slot } from "../ports/Queue.ts"
import type { Watcher } from "../ports/Telemetry.ts"
import type { Tracer } from "../ports/Tracing.ts"
import type { HeldBatch } from "./heldBatches.ts"
import { type Sender, Senders } from "./Senders.ts"
import type { Slots } from "./slots.ts"
import type { CircuitWatch } from "./watchCircuits.ts"

/** The message and its version, which the actor carries from step to step. */
interface Snapshot {
  readonly message: Message
  readonly version: StreamVersion
  /** The version of its last start: unlike its number, no later attempt gets it after a deferral. */
  readonly startedAt: StreamVersion
}

/** How long the lane waits between an answer that opens the circuit and the circuit's own open time. */
const UNTIL_OPEN_MS = 250

/** The slot of an attempt's request; null: it may leave at once. */
export interface Paced {
  slot: Slot | null
  readonly slots: Slots
  /** In nanoseconds of the monotonic clock. */
  readonly begunAt: bigint
  /** How long the request has waited for its slot. */
  waitedMs: number
}

/** Who is told of what this worker does. */
export interface Watched {
  readonly telemetry: Watcher
  readonly tracing: Tracer
}

/**
 * Ends when the message is settled, belongs to another worker, or has nothing left to do. `GateClosed` says that no
 * attempt was started because the destination may not be called now.
 */
export const deliver = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  heldBatch: HeldBatch,
  circuits: CircuitWatch,
  paced: Paced,
  { telemetry, tracing }: Watched,
  onSent: (outcome: AttemptOutcome, isUnreported: boolean) => void
) {
  // Read before the attempt is open: a store that does not answer must leave nothing in doubt.
  const body = claimed.isBodyLarge ? yield* largeBody(claimed, heldBatch) : claimed.body
  const started = yield* start(claimed, heldBatch)
  if (started === "GateClosed") return started
  if (started === null) {
    circuits.observe(claimed, null)
    if (paced.slot !== null) paced.slots.leave(claimed.lane, paced.slot)
    return
  }
  const { messageId, queued, dueAt } = claimed
  const { channel } = queued
  const { epoch, attempt } = started.message.progress
  const span = tracing.attempt({ messageId, queued, epoch, attempt, dueAt })
  telemetry.sendingBegan(channel)
  const reply = yield* Effect.onExitPrimitive(
    send(claimed, body, heldBatch, paced, started.message, span?.traceparent),
    () =>
      // Nothing to run, so no step of the fiber.
      void telemetry.sendingEnded(channel)
  )
  if (reply === null) {
    span?.end(taken.outcome)
    circuits.observe(claimed, null)
    return
  }
  span?.end(reply.outcome)
  const isUnreported = circuits.observe(claimed, reply.outcome)
  if (reply.outcome.type === "Refused") yield* disableIfGone(claimed, reply.outcome)
  // The destination's slot is free from here on: the commit does not concern it.
  onSent(reply.outcome, isUnreported)
  if (reply.outcome.type === "Deferred") yield* deferLane(claimed.lane, reply.outcome)
  const settled = yield* settle(claimed, heldBatch, started, reply)
  if (settled !== null) telemetry.stored({ messageId, queued, epoch, dueAt }, settled.facts, settled.at)
})

/** Null too when the batch was lost meanwhile: then nothing is started. */
const largeBody = ({ messageId }: ClaimedMessage, heldBatch: HeldBatch) =>
  Effect.flatMap(Bodies, (bodies) => whileUnavailable(bodies.load(messageId), whileHeld(heldBatch).unavailable!)).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(null))
  )

/** A failure of the store is ignored: the destination gives the lane's next message the same answer. */
const deferLane = Effect.fnUntraced(function* (
  lane: DestinationId,
  { scope, afterMs }: Extract<AttemptOutcome, { readonly type: "Deferred" }>
) {
  if (scope === "message") return
  const waitMs = scope === "lane" ? laneWaitMs(afterMs) : UNTIL_OPEN_MS
  yield* Effect.ignore((yield* Queue).deferLane(lane, Duration.millis(waitMs)))
})

/** A failure of the store is ignored: the destination gives the lane's next message the same answer. */
const disableIfGone = Effect.fnUntraced(function* ({ lane, queued }: ClaimedMessage, outcome: AttemptOutcome) {
  const channel = (yield* Senders)[queued.channel]
  if (channel?.disableIfGone === undefined) return
  yield* Effect.ignore(channel.disableIfGone(queued.orgId, lane, outcome))
})

/** The message with its attempt open; null when there is nothing to send. */
const start = Effect.fnUntraced(function* (claimed: ClaimedMessage, heldBatch: HeldBatch) {
  const clock = yield* Clock.Clock
  const known = resume(claimed.queued, claimed.epoch, claimed.attempt, claimed.version, claimed.dueAt)
  const atClaim: Snapshot | null = known === null ? null : { message: known, version: claimed.version, startedAt: 0 }
  const result = yield* unlessLost(
    command(
      {
        known: atClaim,
        load: load(claimed),
        decide: (snapshot) => decideStart(claimed, heldBatch, snapshot, snapshot === atClaim, clock),
        append: appendToMessage
      },
      whileHeld(heldBatch)
    )
  )
  return result !== null && "type" in result ? refused(result, heldBatch) : result
})

const nothing = { entry: null, answer: null }

const decideStart = (
  claimed: ClaimedMessage,
  heldBatch: HeldBatch,
  snapshot: Snapshot,
  isAsClaimed: boolean,
  clock: Clock.Clock
): Effect.Effect<Decision<Append, Snapshot | null>, StoreUnavailable, Queue | Channels | Journals> => {
  const { message, version } = snapshot
  if (heldBatch.lost) return Effect.succeed(nothing)
  if (message.status === "SENDING") {
    if (!isOursToFinish(message, claimed)) return Effect.succeed(nothing)
    const open = { entry: null, answer: snapshot }
    // An attempt in doubt waits for its outcome, not for another start. An open attempt right after our claim is our
    // own start whose answer was lost, if the claim outlived the load: until then no other worker could start one.
    if (message.progress.phase === "unresolved") return Effect.succeed(open)
    return Effect.map(isStillHeld(heldBatch), (isHeld) => (isHeld ? open : nothing))
  }
  if (message.status !== "QUEUED" || (!isAsClaimed && isElsewhere(message, claimed))) return Effect.succeed(nothing)
  const decideAfter = (reason: string | null) => {
    const now = nowBy(clock)
    const decided = decide(message, reason === null ? { type: "StartAttempt", now } : { type: "CancelMessage", reason })
    if (Result.isFailure(decided)) return nothing
    const { entry, after } = entryOf(claimed.messageId, message, version, decided.success, now, {
      org: claimed.queued.orgId,
      fence: heldBatch.batch,
      gate: { lane: claimed.lane, generation: claimed.terms.generation }
    })
    const startedAt = version + decided.success.length
    return { entry, answer: after.status === "SENDING" ? { message: after, version: startedAt, startedAt } : null }
  }
  const { dossierId } = claimed.queued
  return dossierId === null
    ? Effect.succeed(decideAfter(null))
    : Effect.map(objection(claimed.queued, dossierId), decideAfter)
}

/** Why the dossier's consent forbids another attempt now; null when it allows one. */
const objection = Effect.fnUntraced(function* ({ orgId, channel }: MessageQueued, dossierId: string) {
  const reason = yield* objectionTo(orgId, dossierId, channel)
  return reason === null ? null : cancelReason(dossierId, channel, reason)
})

/**
 * Retries until the store answers or the batch is lost: an actor that can't read has no other work, and giving up would
 * leave the whole batch to its lease.
 */
const whileHeld = (heldBatch: HeldBatch): Patience => ({
  tries: Number.POSITIVE_INFINITY,
  unavailable: { schedule: storePauses, while: () => !heldBatch.lost }
})

/** A batch that was lost while the store did not answer belongs to another worker. */
const unlessLost = <A, R>(commanded: Effect.Effect<A, StoreUnavailable | Overtaken, R>) =>
  Effect.match(commanded, { onFailure: () => null, onSuccess: identity<A> })

/** `DateTime.now` costs four steps of the fiber. */
const nowBy = (clock: Clock.Clock) => DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())

const refused = ({ type }: AppendResult, heldBatch: HeldBatch): "GateClosed" | null => {
  if (type === "FenceLost") heldBatch.lose()
  return type === "GateClosed" ? type : null
}

const isStillHeld = Effect.fnUntraced(function* (heldBatch: HeldBatch) {
  if (heldBatch.lost) return false
  const askedAt = (yield* Clock.Clock).monotonicTimeNanosUnsafe()
  const renewed = yield* (yield* Queue).renew([heldBatch.batch], heldBatch.lease)
  if (renewed.has(heldBatch.batch)) {
    heldBatch.renewed(askedAt)
    return true
  }
  heldBatch.lose()
  return false
})

/** As `isStillHeld`, outside of a command. */
const isSurelyHeld = (heldBatch: HeldBatch) =>
  whileUnavailable(isStillHeld(heldBatch), whileHeld(heldBatch).unavailable!).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(false))
  )

/** An epoch or attempt beyond the claimed one: the message moved on and waits in the queue again. */
const isElsewhere = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch !== claimed.epoch || progress.attempt !== claimed.attempt

const isOursToFinish = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch === claimed.epoch && progress.attempt === claimed.attempt + 1 && isOpen(progress.phase)

/** Null when the batch was taken over and nothing was sent: the attempt belongs to another worker. */
const send = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  body: string | null,
  heldBatch: HeldBatch,
  paced: Paced,
  message: Message,
  // Without a span of ours the receiver joins its sender's trace.
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
    const ask = () => reconcile(about).pipe(orElse(unknown(ourFault, RECONCILE_AFTER_MS)))
    return yield* inSlot(claimed, paced, Effect.succeed(true), Effect.suspend(ask), stillUnknown)
  }
  if (channel === undefined)
    return notSent("channel_unavailable", `no ${claimed.queued.channel} channel is set up here`)
  // The message knows of an erasure after the claim, the claim does not.
  if (body === null || erased) return notSent("body_erased", "the body was erased before it could be sent")
  const dedupes = yield* channel.dedupes(orgId, destination)
  const failed = dedupes ? broken : unknown(ourFault, yield* doubtMsOf(channel, claimed.queued))
  // Where a duplicate would not be dropped the store is asked each time: a crash of the database may have shortened the lease.
  const mayLeave = dedupes ? Effect.succeed(true) : isSurelyHeld(heldBatch)
  const clock = yield* Clock.Clock
  const leave = underLease(heldBatch, clock, () => channel.send({ ...about, body }).pipe(orElse(failed)))
  return yield* inSlot(claimed, paced, mayLeave, leave, slotMissed)
})

/** Leaves in the slot or, when it passed while the start was being stored, in one of the next. */
const inSlot = Effect.fnUntraced(function* (
  { lane }: ClaimedMessage,
  paced: Paced,
  mayLeave: Effect.Effect<boolean, never, Queue>,
  leave: Effect.Effect<Reply | null, never, Queue>,
  missed: Reply
) {
  const clock = yield* Clock.Clock
  const millisSince = (moment: bigint) => Number(clock.monotonicTimeNanosUnsafe() - moment) / 1e6
  const { slots, begunAt } = paced
  let { slot } = paced
  for (let tries = 0; ; tries++) {
    if (!(yield* mayLeave)) return null
    if (slot === null) return yield* leave
    if (tries === 0) slots.stored(millisSince(begunAt))
    const readyAt = clock.monotonicTimeNanosUnsafe()
    yield* slots.until(slot)
    paced.waitedMs += millisSince(readyAt)
    if (!slots.isMissed(slot)) return yield* leave
    slot = yield* slots.next(lane, slot, tries)
    if (slot === null) return missed
  }
})

/** Begins to send in the same step that looks at the clock. Null when the lease was lost: nothing is sent then. */
const underLease = (
  heldBatch: HeldBatch,
  clock: Clock.Clock,
  send: () => Effect.Effect<Reply>
): Effect.Effect<Reply | null, never, Queue> =>
  Effect.suspend(() => {
    if (heldBatch.lost) return Effect.succeed(null)
    if (clock.monotonicTimeNanosUnsafe() < heldBatch.heldUntil) return send()
    return Effect.flatMap(isSurelyHeld(heldBatch), (isHeld) =>
      isHeld ? underLease(heldBatch, clock, send) : Effect.succeed(null)
    )
  })

/** How long to wait before the destination is first asked about an attempt in doubt. */
export const doubtMsOf = (channel: Sender | undefined, { orgId, destination }: MessageQueued): Effect.Effect<number> =>
  channel?.doubtMs?.(orgId, destination) ?? Effect.succeed(RECONCILE_AFTER_MS)

/** A bug in a channel must not keep its message open: the attempt counts as failed on our side. */
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

/** Our own fault: the store was too slow for several slots. The message waits for another one, and the attempt does not count. */
const missedSlot: DeliveryError = {
  code: "slot_missed",
  message: "the request could not leave in time for its slot of the rate limit",
  retryable: true
}

const slotMissed: Reply = {
  outcome: { type: "Deferred", error: missedSlot, status: null, scope: "message", afterMs: 0, durationMs: 0 },
  responseBody: null
}

const stillUnknown = unknown(missedSlot, RECONCILE_AFTER_MS)

const taken: Reply = notSent("taken_over", "another worker has taken the message over")

const broken: Reply = {
  outcome: { type: "Unreachable", error: ourFault, status: null, retryAfterMs: null, durationMs: 0 },
  responseBody: null
}

/** The facts that were stored; null when none were. */
const settle = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  heldBatch: HeldBatch,
  started: Snapshot,
  { outcome, exchange, responseBody, responseHeaders }: Reply
) {
  const { epoch, attempt, doubts } = started.message.progress
  // An attempt that does not count leaves its number, and with it the place of its answer, to the next attempt.
  const body = responseBody ?? ""
  const isKept = (body !== "" || responseHeaders !== undefined) && outcome.type !== "Deferred"
  const response: AttemptResponse | null = isKept ? { epoch, attempt, body, headers: responseHeaders ?? null } : null
  const die = (yield* Random.Random).nextDoubleUnsafe()
  const clock = yield* Clock.Clock
  const decideSettlement = ({ message, version, startedAt }: Snapshot) => {
    if (heldBatch.lost) return nothing
    // Our own settlement was stored and its answer lost, or another writer settled the attempt.
    if (startedAt !== started.startedAt || !isOpen(message.progress.phase)) return nothing
    // Any other doubt than the one at our claim is our own: a second one would ask about it twice.
    if (message.progress.doubts !== doubts) return nothing
    const now = nowBy(clock)
    const decided = decide(message, { type: "SettleAttempt", attempt, outcome, exchange: exchange ?? null, now, die })
    if (Result.isFailure(decided)) return nothing
    const { entry } = entryOf(claimed.messageId, message, version, decided.success, now, {
      org: claimed.queued.orgId,
      fence: heldBatch.batch,
      // Erased during the attempt: the answer must not bring back erased data.
      response: message.progress.erased ? null : response
    })
    return { entry, answer: { facts: decided.success, at: now } }
  }
  const result = yield* unlessLost(
    command(
      {
        known: started,
        load: load(claimed),
        decide: (snapshot) => Effect.succeed(decideSettlement(snapshot)),
        append: appendToMessage
      },
      whileHeld(heldBatch)
    )
  )
  if (result === null || !("type" in result)) return result
  refused(result, heldBatch)
  return null
})

const isOpen = (phase: Message["progress"]["phase"]) => phase === "open" || phase === "unresolved"

const load = ({ messageId }: ClaimedMessage) =>
  Effect.flatMap(EventStore, (store) => Effect.map(store.load(messageId), snapshotOf))

const snapshotOf = ({ version, facts }: Stream): Snapshot => ({
  message: replay(facts.map(({ fact }) => fact)),
  version,
  startedAt: facts.findLast(({ fact }) => fact.type === "AttemptStarted")?.version ?? 0
})
