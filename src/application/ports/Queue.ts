import { type Brand, Context, type DateTime, type Duration, type Effect } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { FromStore } from "../errors.ts"

/** A larger body is not held in memory before its message starts. */
export const CLAIMED_BODY_MAX = 32 * 1024

/** One claimed batch: its lease, and the fence of its appends. */
export type BatchId = string & Brand.Brand<"BatchId">

export interface ClaimTerms {
  /** The circuit's generation at the claim: under another one the attempt may not start. */
  readonly generation: number
  /**
   * `watched`: the circuit counts failures or lets traffic back in, so a success must be reported. `probe`: the message
   * is the circuit's probe. Null: only a failure must be reported.
   */
  readonly circuitMode: "watched" | "probe" | null
  /** The time after the claim in which the attempt may start; null: as long as the claim is held. */
  readonly startWithinMs: number | null
  /** The lane has a rate limit: a claimed message counts, so none is claimed that can't start now. */
  readonly isRateLimited: boolean
  /** Messages of the lane under way in this worker; null: no limit but the channel's. */
  readonly inFlightMax: number | null
}

export interface AbandonedMessage {
  readonly messageId: MessageId
  readonly lane: DestinationId
  readonly dueAt: DateTime.Utc
  readonly version: number
  readonly epoch: number
  readonly attempt: number
}

/** A batch under its new name. */
export interface TakenBatch {
  readonly batch: BatchId
  readonly messages: ReadonlyArray<AbandonedMessage>
}

/** A claimed message, with everything its worker needs to start without reading the stream. */
export interface ClaimedMessage extends AbandonedMessage {
  readonly queued: MessageQueued
  /** Null when it was erased or is large. */
  readonly body: string | null
  /** More than `CLAIMED_BODY_MAX` bytes: read just before it is sent. */
  readonly isBodyLarge: boolean
  readonly terms: ClaimTerms
}

export interface Claim {
  readonly batch: BatchId
  readonly messages: ReadonlyArray<ClaimedMessage>
  readonly unreadable?: ReadonlyArray<
    Pick<ClaimedMessage, "messageId" | "lane" | "terms"> & { readonly defect: unknown }
  >
}

export interface ClaimRequest {
  readonly worker: string
  readonly limit: number
  /** The messages that a lane outside of `room` may give. */
  readonly perLane: number
  /** The messages that each lane of this worker may still give; 0 skips the lane. */
  readonly room: ReadonlyMap<DestinationId, number>
  /** Orgs that give only from lanes in `room`. */
  readonly fullOrgs: ReadonlySet<OrgId>
  readonly lease: Duration.Duration
}

/**
 * The messages that wait, and the workers that hold messages. Messages enter and leave the waiting state only through
 * the queue changes of `EventStore.append`.
 *
 * - `claim` hands a waiting message out to one worker, in due order within its lane. Lanes take turns: one with a
 *   million messages delays no other, and lanes with nothing due cost nothing.
 * - A lane hands out nothing while it is paused or its circuit is open or held, and over all workers no more than its
 *   rate limit; such a lane costs a claim nothing. A circuit whose open time is over hands out one probe and writes
 *   `CircuitProbed`: the permit is a lease, and the next probe waits until it has run out.
 * - `deferLane` stops a lane for `wait`, by the store's clock; a longer deferral stays. Claimed messages and due
 *   times do not change. New settings of its destination may end it early.
 * - A claim is a lease on the whole batch, by the store's clock. `renew` extends the named batches and answers those
 *   that exist. It names batches, not the worker: else a claim whose answer was lost would live on.
 * - `takeOver` gives batches whose lease ran out new ids: appends fenced by the old id then have no effect. `rename`
 *   does the same to batches of the caller, and begins their leases anew.
 * - `claimOne` claims this message before its time, whatever holds its lane, only to move it. Null where it does not
 *   wait in its lane under this due time.
 * - `putBack` takes messages that were not started out of a batch: they wait as before the claim. It may be repeated,
 *   and ignores messages that are not in the batch.
 * - `release` ends a batch: `notStarted` wait as before the claim, all others leave the queue (their appends say what
 *   comes next). Without the batch nothing happens.
 * - `awaitWork` returns when there may be due messages or after `atMost`. It is a hint: polling is the floor.
 */
export class Queue extends Context.Service<
  Queue,
  {
    /** Null when no message is due, or only in lanes without room. */
    readonly claim: (request: ClaimRequest) => FromStore<Claim | null>
    readonly claimOne: (
      worker: string,
      message: Pick<AbandonedMessage, "messageId" | "lane" | "dueAt">,
      lease: Duration.Duration
    ) => FromStore<BatchId | null>
    readonly putBack: (batch: BatchId, messages: ReadonlyArray<MessageId>) => FromStore<void>
    readonly release: (batch: BatchId, notStarted: ReadonlyArray<AbandonedMessage>) => FromStore<void>
    readonly renew: (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) => FromStore<ReadonlySet<BatchId>>
    readonly takeOver: (
      worker: string,
      lease: Duration.Duration,
      batchesMax: number
    ) => FromStore<ReadonlyArray<TakenBatch>>
    readonly rename: (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) => FromStore<ReadonlyArray<TakenBatch>>
    readonly deferLane: (lane: DestinationId, wait: Duration.Duration) => FromStore<void>
    /**
     * The next time the queue may hand out a message; null when only an append or a change of settings can change that.
     */
    readonly nextDueAt: FromStore<DateTime.Utc | null>
    readonly awaitWork: (atMost: Duration.Duration) => Effect.Effect<void>
  }
>()("posthaste/application/ports/Queue") {}
