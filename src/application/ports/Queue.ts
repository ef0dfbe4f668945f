import { type Brand, Context, type DateTime, type Duration, type Effect } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import type { FromStore } from "../errors.ts"

/** A larger body is not held in memory before its message starts. */
export const CLAIMED_BODY_MAX = 32 * 1024

/** Names one claimed batch: its lease, and the fence of its appends. */
export type BatchId = string & Brand.Brand<"BatchId">

/** The conditions under which a claimed message may be sent. */
export interface ClaimTerms {
  /** The circuit's generation that the claim saw: under another one the attempt may not start. */
  readonly generation: number
  /**
   * `watched`: the circuit counts failures or lets traffic back in, so a success must be reported. `probe`: the
   * message is the circuit's probe. Null: only a failure must be reported.
   */
  readonly circuitMode: "watched" | "probe" | null
  /** How long after the claim the attempt may still start; null: as long as the claim is held. */
  readonly startWithinMs: number | null
  /** The lane has a rate limit: a message that is claimed counts, so none is claimed that can't start now. */
  readonly isRateLimited: boolean
  /** How many messages of the lane may be under way in this worker; null: no limit but the channel's. */
  readonly inFlightMax: number | null
}

/** A message of a batch whose worker is gone. Only the stream tells whether its attempt was started. */
export interface AbandonedMessage {
  readonly messageId: MessageId
  readonly lane: DestinationId
  readonly dueAt: DateTime.Utc
  /** The stream's version when the message was put in the queue. */
  readonly version: number
  readonly epoch: number
  /** Attempts closed in this epoch. */
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
  /** Null when it was erased, or is left out because it is large. */
  readonly body: string | null
  /** It has more than `CLAIMED_BODY_MAX` bytes, and is read just before it is sent. */
  readonly isBodyLarge: boolean
  readonly terms: ClaimTerms
}

export interface Claim {
  readonly batch: BatchId
  readonly messages: ReadonlyArray<ClaimedMessage>
  /** Messages of the batch that can't be read, each with the defect. */
  readonly unreadable?: ReadonlyArray<
    Pick<ClaimedMessage, "messageId" | "lane" | "terms"> & { readonly defect: unknown }
  >
}

export interface ClaimRequest {
  readonly worker: string
  readonly limit: number
  /** How many messages a lane that is not in `room` may give. */
  readonly perLane: number
  /** The lanes that this worker already works on: how many more messages each may give; 0 skips the lane. */
  readonly room: ReadonlyMap<DestinationId, number>
  /** Orgs that give only from lanes that `room` names. */
  readonly fullOrgs: ReadonlySet<OrgId>
  readonly lease: Duration.Duration
}

/**
 * The messages that wait, and the workers that hold messages.
 *
 * - A waiting message is handed out by at most one `claim` at a time, in due order within its lane. Lanes with due
 *   messages take turns; a lane with a million waiting messages does not delay other lanes, and lanes whose messages
 *   are all due later cost nothing.
 * - A lane hands out no more than its destination allows: nothing while it is paused or its circuit is open or held,
 *   and over all workers no more than its rate limit lets through: a request that is late afterwards goes late. Such a lane costs a
 *   claim nothing, and its messages stay as they are. A circuit whose open time is over hands out one message, its probe, and writes `CircuitProbed`
 *   with it: the permit is a lease, and the next probe waits until it has run out.
 * - `deferLane` lets a lane hand out nothing for `wait` from now, by the store's clock; a longer deferral that is under
 *   way stays. Messages that were handed out before, and due times, do not change. New settings of its destination may
 *   end it early.
 * - A claim is a lease on the whole batch, judged by the store's clock. While it lives, no other worker gets its
 *   messages. `renew` extends the leases of the named batches and answers those that still exist. (It names batches and
 *   not the worker: a claim whose answer was lost would otherwise be kept alive by a worker that does not know it.)
 * - `takeOver` moves the batches whose lease ran out to `worker` under new batch ids: from then on every append fenced
 *   by the old id has no effect. `rename` does the same to batches that the caller holds, and begins their leases anew.
 * - `claimOne` claims this one message before its time, whatever holds its lane: not to send it, but to move it. Null where
 *   it does not wait in its lane under this due time: a worker has it, or it stands in its line.
 * - `putBack` takes messages that were not started out of a batch: they wait again as before the claim, and the batch
 *   keeps the rest. Messages that are not in the batch do not change, so it may be repeated; without the batch nothing
 *   happens.
 * - `release` ends a batch: the messages in `notStarted` wait again as before the claim, all others leave the queue
 *   (their appends have said what comes next). Named messages that are not in the batch do not change. Without the
 *   batch nothing happens.
 * - `awaitWork` returns when there may be due messages or when `atMost` has passed, whichever is first. Messages become
 *   visible to `claim` before it returns for them. It is a hint: polling is the floor.
 *
 * Messages enter and leave the waiting state only through the queue changes of `EventStore.append`.
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
    /** When the queue may next hand out a message; null when only an append or a change of settings can change that. */
    readonly nextDueAt: FromStore<DateTime.Utc | null>
    readonly awaitWork: (atMost: Duration.Duration) => Effect.Effect<void>
  }
>()("posthaste/application/ports/Queue") {}
