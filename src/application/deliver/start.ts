/** The first step of an attempt: `AttemptStarted` is committed, fenced by the claim, before any byte leaves. */
import { Clock, DateTime, Effect, Result } from "effect"
import { decide, replay } from "../../domain/message/decider.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { resume } from "../../domain/message/resume.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { appendToMessage, command, type Decision } from "../command.ts"
import { cancelReason, objectionTo } from "../consents/consents.ts"
import { entryOf } from "../entry.ts"
import type { Channels } from "../ports/Channels.ts"
import { type Append, EventStore, type Stream, type StreamVersion } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import type { Journals } from "../ports/Journals.ts"
import type { ClaimedMessage, Queue } from "../ports/Queue.ts"
import { isStillHeld, type Lease, unlessLost, whileHeld } from "./lease.ts"

export interface Snapshot {
  readonly message: Message
  readonly version: StreamVersion
  /** The version of the last start: a deferral reuses its number, not this. */
  readonly startedAt: StreamVersion
}

/** Null when there is nothing to send; `GateClosed` when the destination may not be called. */
export const start = Effect.fnUntraced(function* (claimed: ClaimedMessage, lease: Lease) {
  const clock = yield* Clock.Clock
  const known = resume(claimed.queued, claimed.epoch, claimed.attempt, claimed.version, claimed.dueAt)
  const atClaim: Snapshot | null = known === null ? null : { message: known, version: claimed.version, startedAt: 0 }
  const result = yield* unlessLost(
    command(
      {
        known: atClaim,
        load: load(claimed),
        decide: (snapshot) => decideStart(claimed, lease, snapshot, snapshot === atClaim, clock),
        append: appendToMessage
      },
      whileHeld(lease)
    )
  )
  if (result === null || !("type" in result)) return result
  if (result.type === "FenceLost") lease.lose()
  return result.type === "GateClosed" ? result.type : null
})

export const nothing = { entry: null, answer: null }

const decideStart = (
  claimed: ClaimedMessage,
  lease: Lease,
  snapshot: Snapshot,
  isAsClaimed: boolean,
  clock: Clock.Clock
): Effect.Effect<Decision<Append, Snapshot | null>, StoreUnavailable, Queue | Channels | Journals> => {
  const { message, version } = snapshot
  if (lease.lost) return Effect.succeed(nothing)
  if (message.status === "SENDING") {
    if (!isOursToFinish(message, claimed)) return Effect.succeed(nothing)
    const open = { entry: null, answer: snapshot }
    // An attempt in doubt waits for its outcome. An open attempt after our claim is our own start with a lost answer,
    // if the claim still stands.
    if (message.progress.phase === "unresolved") return Effect.succeed(open)
    return Effect.map(isStillHeld(lease), (isHeld) => (isHeld ? open : nothing))
  }
  if (message.status !== "QUEUED" || (!isAsClaimed && isElsewhere(message, claimed))) return Effect.succeed(nothing)
  const decideAfter = (reason: string | null) => {
    const now = nowBy(clock)
    const decided = decide(message, reason === null ? { type: "StartAttempt", now } : { type: "CancelMessage", reason })
    if (Result.isFailure(decided)) return nothing
    const { entry, after } = entryOf(claimed.messageId, message, version, decided.success, now, {
      fence: lease.batch,
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

const objection = Effect.fnUntraced(function* ({ orgId, channel }: MessageQueued, dossierId: string) {
  const reason = yield* objectionTo(orgId, dossierId, channel)
  return reason === null ? null : cancelReason(dossierId, channel, reason)
})

/** `DateTime.now` costs four steps of the fiber. */
export const nowBy = (clock: Clock.Clock) => DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())

/** True when the message moved on and waits in the queue again. */
const isElsewhere = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch !== claimed.epoch || progress.attempt !== claimed.attempt

const isOursToFinish = ({ progress }: Message, claimed: ClaimedMessage): boolean =>
  progress.epoch === claimed.epoch && progress.attempt === claimed.attempt + 1 && isOpen(progress.phase)

export const isOpen = (phase: Message["progress"]["phase"]) => phase === "open" || phase === "unresolved"

export const load = ({ messageId }: ClaimedMessage) =>
  Effect.flatMap(EventStore, (store) => Effect.map(store.load(messageId), snapshotOf))

const snapshotOf = ({ version, facts }: Stream): Snapshot => ({
  message: replay(facts.map(({ fact }) => fact)),
  version,
  startedAt: facts.findLast(({ fact }) => fact.type === "AttemptStarted")?.version ?? 0
})
