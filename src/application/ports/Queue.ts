import { type Brand, Context, type DateTime, type Duration, type Effect } from "effect"
import type { DestinationId, MessageId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { StoreUnavailable } from "./EventStore.ts"

/** Names one claimed batch: its lease, and by its removal the fence. */
export type BatchId = string & Brand.Brand<"BatchId">

/** A message handed out by the queue, with what its worker needs to start without reading the stream. */
export interface ClaimedMessage {
  readonly messageId: MessageId
  readonly lane: DestinationId
  readonly dueAt: DateTime.Utc
  /** The stream's version when the message was put in the queue. */
  readonly version: number
  readonly epoch: number
  /** Attempts made in this epoch. */
  readonly attempt: number
  readonly queued: MessageQueued
  /** Null when it was erased. */
  readonly body: string | null
}

export interface Claim {
  readonly batch: BatchId
  readonly messages: ReadonlyArray<ClaimedMessage>
}

export interface ClaimRequest {
  readonly worker: string
  readonly limit: number
  /** No lane gives more than this to one claim. */
  readonly perLane: number
  /** Lanes this worker already has enough of: at most so many more from each; 0 skips the lane. */
  readonly room: ReadonlyMap<DestinationId, number>
  readonly lease: Duration.Duration
}

/** A message of a batch whose holder went away. Whether its attempt was started, only the stream tells. */
export interface AbandonedMessage {
  readonly messageId: MessageId
  readonly lane: DestinationId
  readonly dueAt: DateTime.Utc
  readonly version: number
  readonly epoch: number
  readonly attempt: number
}

/**
 * What waits, and who holds what.
 *
 * - A waiting message is handed out by at most one `claim` at a time, in due order within its lane.
 *   Lanes with due work take turns; a lane with a million waiting messages does not delay the others,
 *   and lanes that only wait for the future cost nothing.
 * - A claim is a lease on the whole batch, judged by the store's clock. While it lives, nobody else gets
 *   its messages. `renew` extends all leases of a worker and tells which batches it still holds.
 * - `takeOver` moves the batches whose lease ran out to `worker` under new batch ids: from then on every
 *   append fenced by the old id has no effect.
 * - `release` ends a batch: messages named in `unstarted` wait again as they did before the claim, all
 *   others are gone from the queue (their appends have said what comes next). If the batch is no longer
 *   held, nothing happens.
 * - `awaitWork` returns when there may be due work or when `atMost` has passed, whichever is first.
 *   Messages become visible to `claim` before it returns for them. It is a hint: polling is the floor.
 *
 * Messages enter and leave the waiting state only through the queue changes of `EventStore.append`.
 */
export class Queue extends Context.Service<
  Queue,
  {
    /** Null when nothing is due (or all of it is in lanes without room). */
    readonly claim: (request: ClaimRequest) => Effect.Effect<Claim | null, StoreUnavailable>
    readonly release: (
      batch: BatchId,
      unstarted: ReadonlyArray<AbandonedMessage>
    ) => Effect.Effect<void, StoreUnavailable>
    readonly renew: (worker: string, lease: Duration.Duration) => Effect.Effect<ReadonlySet<BatchId>, StoreUnavailable>
    readonly takeOver: (
      worker: string,
      lease: Duration.Duration,
      batchesMax: number
    ) => Effect.Effect<
      ReadonlyArray<{ readonly batch: BatchId; readonly messages: ReadonlyArray<AbandonedMessage> }>,
      StoreUnavailable
    >
    /** When the earliest waiting message is due; null when none waits. */
    readonly nextDueAt: Effect.Effect<DateTime.Utc | null, StoreUnavailable>
    readonly awaitWork: (atMost: Duration.Duration) => Effect.Effect<void>
  }
>()("posthaste/application/ports/Queue") {}
