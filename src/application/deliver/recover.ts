/**
 * Recovers batches whose worker is gone. The stream decides about each message: without a fact since the claim it waits
 * again; an open attempt of the claim is abandoned and made again where the destination drops duplicates, and in doubt
 * where it does not; after any other facts it is settled. A stream that can't be processed is parked alone.
 */
import { DateTime, type Duration, Effect, Random, Result } from "effect"
import { decide, replay } from "../../domain/message/decider.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { streamOf } from "../../domain/streams.ts"
import { commandMessages, type Decision } from "../command.ts"
import { entryOf } from "../entry.ts"
import { park } from "../park.ts"
import type { Append, Stream } from "../ports/EventStore.ts"
import { type AbandonedMessage, type BatchId, Queue } from "../ports/Queue.ts"
import { type Subject, Telemetry } from "../ports/Telemetry.ts"
import { Tracing } from "../ports/Tracing.ts"
import { Senders } from "./Senders.ts"
import { doubtMsOf } from "./send.ts"

const BATCHES_AT_ONCE = 10

export const recover = Effect.fn("recover")(function* (worker: string, lease: Duration.Duration) {
  const queue = yield* Queue
  let recovered = 0
  for (;;) {
    const batches = yield* queue.takeOver(worker, lease, BATCHES_AT_ONCE)
    yield* Effect.forEach(batches, ({ batch, messages }) => recoverBatch(batch, messages, "the worker went away"))
    recovered += batches.length
    if (batches.length < BATCHES_AT_ONCE) return recovered
  }
})

/** Settles the messages of `batch`, which the caller holds, and releases it. */
export const recoverBatch = Effect.fn("recoverBatch")(function* (
  batch: BatchId,
  messages: ReadonlyArray<AbandonedMessage>,
  reason: string
) {
  const doubtOf = yield* doubtOnce
  const telemetry = yield* Telemetry
  const tracing = yield* Tracing
  const defects = new Map<string, unknown>()
  const decided = yield* commandMessages(
    messages,
    Effect.fnUntraced(function* (message, stream): Effect.fn.Return<Decision<Append, Recovered>> {
      const found = stream === undefined ? "settled" : foundOf(message, stream)
      if (found === "not started") {
        return { entry: null, answer: { notStarted: { ...message, version: stream!.version }, abandoned: null } }
      }
      if (found === "settled") return { entry: null, answer: nothing }
      const entry = yield* abandon(batch, message, stream!, reason, doubtOf)
      const queued = stream!.facts[0]!.fact as MessageQueued
      return {
        entry,
        answer: { notStarted: null, abandoned: { ...message, queued, facts: entry.facts, at: entry.at } }
      }
    }),
    { tries: Number.POSITIVE_INFINITY },
    ({ messageId }, defect) => Effect.sync(() => defects.set(streamOf(messageId), defect))
  ).pipe(Effect.catchTag("Overtaken", Effect.die))
  for (const { abandoned } of decided) {
    if (abandoned === null) continue
    telemetry.stored(abandoned, abandoned.facts, abandoned.at)
    tracing.abandoned(abandoned, abandoned.facts)
  }
  yield* park(defects)
  yield* (yield* Queue).release(
    batch,
    decided.flatMap(({ notStarted }) => notStarted ?? [])
  )
})

interface Recovered {
  readonly notStarted: AbandonedMessage | null
  readonly abandoned:
    | (Subject & { readonly dueAt: DateTime.Utc; readonly facts: Append["facts"]; readonly at: Append["at"] })
    | null
}

const nothing: Recovered = { notStarted: null, abandoned: null }

const foundOf = (claimed: AbandonedMessage, { facts }: Stream): "not started" | "open" | "settled" => {
  const since = facts.filter(({ version, fact }) => version > claimed.version && !isBeside(fact))
  if (since.length === 0) return "not started"
  const [first, ...rest] = since
  return first!.fact.type === "AttemptStarted" && rest.length === 0 ? "open" : "settled"
}

/** These facts come in any state and are no step of the message. */
const isBeside = ({ type }: MessageFact) => type === "ReceiptRecorded" || type === "MessageBodyErased"

/**
 * The time before an attempt in doubt is asked about; null where the destination drops duplicates. Each destination is
 * read once.
 */
const doubtOnce = Effect.map(Senders, (channels) => {
  const known = new Map<string, number | null>()
  return Effect.fnUntraced(function* (queued: MessageQueued) {
    const { orgId, destination } = queued
    const before = known.get(destination)
    if (before !== undefined) return before
    const channel = channels[queued.channel]
    const answer = (yield* channel?.dedupes(orgId, destination) ?? never) ? null : yield* doubtMsOf(channel, queued)
    known.set(destination, answer)
    return answer
  })
})

/** Without the channel it is unknown whether a duplicate is dropped. */
const never = Effect.succeed(false)

const abandon = Effect.fnUntraced(function* (
  fence: BatchId,
  { messageId }: AbandonedMessage,
  stream: Stream,
  reason: string,
  doubtOf: Effect.Success<typeof doubtOnce>
) {
  const now = yield* DateTime.now
  const die = yield* Random.next
  const message = replay(stream.facts.map(({ fact }) => fact))
  const doubtMs = yield* doubtOf(stream.facts[0]!.fact as MessageQueued)
  const close = doubtMs === null ? giveUp(message, reason) : doubt(message, reason, doubtMs)
  const facts = Result.getOrThrow(decide(message, { ...close, now, die }))
  return entryOf(messageId, message, stream.version, facts, now, { fence }).entry
})

const giveUp = ({ progress: { attempt } }: Message, reason: string) => ({
  type: "AbandonAttempt" as const,
  attempt,
  reason
})

const doubt = ({ progress: { attempt } }: Message, reason: string, reconcileAfterMs: number) => ({
  type: "SettleAttempt" as const,
  attempt,
  outcome: {
    type: "Unknown" as const,
    error: { code: "abandoned", message: reason, retryable: true },
    status: null,
    reconcileAfterMs,
    durationMs: 0
  }
})
