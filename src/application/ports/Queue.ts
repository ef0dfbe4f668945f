import { type Brand, Context, type DateTime, type Duration, type Effect } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { FromStore } from "./errors.ts"

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
 * The messages that wait, and the workers that hold messages. Only the queue changes of `EventStore.append` put
 * messages in and out.
 *
 * - `claim` hands a waiting message to one worker, in due order within its lane. Lanes take turns: one with a million
 *   messages delays no other, and lanes with nothing due cost nothing.
 * - A lane hands out nothing while it is paused or its circuit is open or held, and over all workers no more than its
 *   rate limit. A circuit whose open time is over hands out one probe and writes `CircuitProbed`: the permit is a
 *   lease.
 * - `deferLane` stops a lane for `wait`; a longer deferral stays, and new settings may end it early.
 * - A claim is a lease on the whole batch. `renew` names batches and not the worker: else a claim whose answer was
 *   lost would live on. All times are the store's.
 * - `takeOver` gives batches whose lease ran out new ids: appends fenced by the old id then have no effect. `rename`
 *   does the same to batches of the caller.
 * - `claimOne` claims this message before its time, whatever holds its lane, only to move it. Null where it does not
 *   wait in its lane under this due time.
 * - `putBack` takes messages that were not started out of a batch; `release` ends a batch: `notStarted` wait as
 *   before the claim, all others leave the queue. Both may be repeated.
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
