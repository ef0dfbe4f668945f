/**
 * Makes a message due now that waits for a retry, a deferral or a scheduled time. It is claimed under a lease of its
 * own, so that no worker sends it meanwhile; `MessageHurried`, fenced by the claim, puts it back; then the claim ends.
 * After a crash a worker takes over the batch like any other (deliver/recover.ts).
 */
import { DateTime, Duration, Effect, Result, Schema } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { decide, replay } from "../../domain/message/decider.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { attentionAt } from "../../domain/message/queueChange.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { viewOf } from "../../domain/message/view.ts"
import { appendToMessage } from "../command.ts"
import { CommandedBy } from "../commandedBy.ts"
import { entryOf } from "../entry.ts"
import { type BatchId, Queue } from "../ports/Queue.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { MessageBusy, refusalIn } from "./commandMessage.ts"
import { loadStream } from "./readMessage.ts"

/** Another message of its ordering key goes first, or a worker has it already. */
export class NotInItsLane extends Schema.TaggedError<NotInItsLane>()("NotInItsLane", {}) {}

const LEASE = Duration.seconds(10)
const HOLDER = "hurry"
const TRIES = 6

export const hurryMessage = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  for (let left = TRIES; left > 0; left--) {
    const hurried = yield* hurryOnce(orgId, id)
    if (hurried !== null) return hurried
  }
  return yield* new MessageBusy({ id })
})

const hurryOnce = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId) {
  const { version, facts: history } = yield* loadStream(orgId, id)
  const message = replay(history.map(({ fact }) => fact))
  const now = yield* DateTime.now
  const decided = decide(message, { type: "HurryMessage", now })
  if (Result.isFailure(decided)) {
    return yield* refusalIn(message, now)
  }
  const facts = decided.success
  if (facts.length === 0) return viewOf(id, history)!
  const queue = yield* Queue
  const waiting = waitingOf(id, message, version)
  const batch = yield* queue.claimOne(HOLDER, waiting, LEASE)
  if (batch === null) return yield* new NotInItsLane()
  const { entry } = entryOf(id, message, version, facts, now, { fence: batch, actor: yield* CommandedBy })
  const { type } = yield* appendToMessage(entry)
  if (type === "Appended") {
    // It is done; a release that fails is done by whoever takes the lease over.
    yield* Effect.ignore(queue.release(batch, []))
    const queued = history[0]!.fact as MessageQueued
    const subject = { messageId: id, queued, epoch: message.progress.epoch, dueAt: null, by: entry.actor }
    ;(yield* Telemetry).stored(subject, facts, now)
    return viewOf(id, [...history, ...facts.map((fact, i) => ({ version: version + 1 + i, at: now, fact }))])!
  }
  if (type === "VersionConflict") yield* letGo(batch, orgId, id, waiting)
  return null
})

const waitingOf = (messageId: MessageId, message: Message, version: number) => {
  const { destination, epoch, attempt } = message.progress
  return { messageId, lane: destination!, dueAt: attentionAt(message)!, version, epoch, attempt }
}

/** It waits again as before, unless facts since took it out of the queue. */
const letGo = Effect.fnUntraced(function* (
  batch: BatchId,
  orgId: OrgId,
  id: MessageId,
  before: ReturnType<typeof waitingOf>
) {
  const { version, facts } = yield* loadStream(orgId, id)
  const message = replay(facts.map(({ fact }) => fact))
  const waits = message.status === "QUEUED" && message.progress.epoch === before.epoch
  yield* (yield* Queue).release(batch, waits ? [{ ...before, version }] : [])
})
