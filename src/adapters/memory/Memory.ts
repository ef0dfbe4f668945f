/**
 * The "database" of the memory adapters: plain tables that every memory port reads and writes.
 *
 * It promises what a transaction promises, by the simplest means there is: JavaScript runs one step at a
 * time, so a change made without an `await` or a `yield*` in its middle is seen whole or not at all. Every
 * port therefore does its work in one synchronous step.
 *
 * Time is the clock the store was built with, not the caller's: leases are judged by the store. It leaves
 * out durability. Nothing outlives the process, and nothing is ever trimmed.
 */
import { Clock, Context, DateTime, Effect, Layer, type Redacted } from "effect"
import type { ApiKey } from "../../application/ports/ApiKeys.ts"
import type { Endpoint } from "../../application/ports/Endpoints.ts"
import type { Calling } from "../../application/ports/HttpTargets.ts"
import type { JournalFact } from "../../application/ports/Journals.ts"
import type { AbandonedMessage, BatchId } from "../../application/ports/Queue.ts"
import type { ReplayItem, ReplayJob } from "../../application/ports/Replays.ts"
import type { DestinationId, MessageId, ReplayId } from "../../domain/ids.ts"
import type { MessageView } from "../../domain/message/view.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { LaneRow } from "./lanes.ts"

export interface StoredRow extends RecordedFact {
  readonly at: DateTime.Utc
}

/** The lease of one batch. That the row exists is the fence; `until` only says when others may take it over. */
export interface ClaimRow {
  readonly worker: string
  readonly until: DateTime.Utc
  readonly messages: ReadonlyArray<AbandonedMessage>
}

export interface ReplayRow {
  readonly job: ReplayJob
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null
  items: ReadonlyArray<ReplayItem>
  /** Null once it is closed. */
  nextAt: DateTime.Utc | null
}

export interface Tables {
  readonly streams: Map<MessageId, Array<StoredRow>>
  /** Every fact in the order it was committed; a position is a place in this list. */
  readonly feed: Array<{ readonly messageId: MessageId; readonly version: number }>
  readonly journals: Map<string, ReadonlyArray<JournalFact>>
  readonly bodies: Map<MessageId, string>
  readonly responses: Map<MessageId, Map<string, string>>
  readonly idempotencyKeys: Map<string, { readonly messageId: MessageId; readonly requestHash: string }>
  /**
   * What waits, per lane, in the order it will be handed out. The order of the lanes is the order of their
   * turns: a lane that was just visited goes to the end.
   */
  readonly lanes: Map<DestinationId, Array<AbandonedMessage>>
  /** What lanes may hand out, where anything was said about it. */
  readonly laneRows: Map<DestinationId, LaneRow>
  readonly claims: Map<BatchId, ClaimRow>
  readonly endpoints: Map<DestinationId, { endpoint: Endpoint; readonly secrets: ReadonlyArray<Redacted.Redacted> }>
  readonly httpTargets: Map<DestinationId, Calling>
  readonly apiKeys: Map<string, ApiKey & { readonly keyHash: string }>
  readonly views: Map<MessageId, MessageView>
  readonly replays: Map<ReplayId, ReplayRow>
  /** How far the views have read the feed. */
  viewsAt: string | null
  batchesMade: number
  /** Due work was put in the queue and nobody was told yet. */
  hasNews: boolean
}

export class Memory extends Context.Service<
  Memory,
  {
    readonly tables: Tables
    readonly now: () => DateTime.Utc
    /** Called after each change that puts due work in the queue. */
    readonly onDueWork: Set<() => void>
  }
>()("posthaste/adapters/memory/Memory") {}

/** A fresh, empty store. */
export const layer = Layer.effect(
  Memory,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    return Memory.of({
      tables: {
        streams: new Map(),
        feed: [],
        journals: new Map(),
        bodies: new Map(),
        responses: new Map(),
        idempotencyKeys: new Map(),
        lanes: new Map(),
        laneRows: new Map(),
        claims: new Map(),
        endpoints: new Map(),
        httpTargets: new Map(),
        apiKeys: new Map(),
        views: new Map(),
        replays: new Map(),
        viewsAt: null,
        batchesMade: 0,
        hasNews: false
      },
      now: () => DateTime.makeUnsafe(clock.currentTimeMillisUnsafe()),
      onDueWork: new Set()
    })
  })
)
