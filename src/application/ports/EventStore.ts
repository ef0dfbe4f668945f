import { Context, type DateTime, type Effect } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageFact } from "../../domain/message/facts.ts"
import type { QueueChange } from "../../domain/message/queueChange.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { BatchId } from "./Queue.ts"

/** Number of facts in a stream; 0 means the stream does not exist yet. */
export type StreamVersion = number

export interface Stream {
  readonly version: StreamVersion
  readonly facts: ReadonlyArray<StoredFact>
}

/**
 * What comes with the first fact of a stream and must be there exactly when that fact is. A replay with
 * another body brings one too: its body takes the place of the one before.
 */
export interface Opening {
  /** UTF-8 text, delivered byte for byte. */
  readonly body: string
  readonly idempotency: { readonly orgId: OrgId; readonly key: string; readonly requestHash: string } | null
}

/** What the far side answered to an attempt; kept beside the facts because it can hold anything. */
export interface AttemptResponse {
  readonly epoch: number
  readonly attempt: number
  readonly body: string
}

/** What the start of an attempt depends on beside its message: that the destination may still be called. */
export interface Gate {
  readonly lane: DestinationId
  readonly generation: number
}

export interface Append {
  readonly messageId: MessageId
  readonly expected: StreamVersion
  readonly facts: ReadonlyArray<MessageFact>
  readonly at: DateTime.Utc
  /** Who is behind it (see actor.ts); null: Posthaste itself. */
  readonly actor: string | null
  /** The queue change of the last of these facts that has one. */
  readonly queue: QueueChange | null
  /** Write only if this batch is still claimed: a worker whose lease was taken over has no say. */
  readonly fence: BatchId | null
  /** Write only if the lane is not paused and its circuit has seen no change since this generation. */
  readonly gate: Gate | null
  readonly opening: Opening | null
  readonly response: AttemptResponse | null
}

export type AppendResult =
  | { readonly type: "Appended"; readonly version: StreamVersion }
  /** Someone else appended first (or `expected` was never true). Reload and decide again. */
  | { readonly type: "VersionConflict" }
  /** The batch in `fence` is no longer claimed. Stop: the message belongs to somebody else now. */
  | { readonly type: "FenceLost" }
  /** The lane was paused, or its circuit changed. Nothing was written: the message goes back to wait as it was. */
  | { readonly type: "GateClosed" }
  /** The idempotency key was used before, for this message. Nothing was written. */
  | { readonly type: "DuplicateKey"; readonly messageId: MessageId; readonly requestHash: string }

/** A place in the order of all facts. Opaque; compare only by handing it back. */
export type Position = string

/** How far the log reaches. */
export interface Extent {
  /** Of the last fact that `readAll` gives; null while there is none. */
  readonly head: Position | null
  /** About how many facts there are. */
  readonly facts: number
}

/** A fact of any stream, in its stored form: whoever reads the log decodes what it knows. */
export interface LoggedFact extends RecordedFact {
  /** `message-<id>`, `circuit-<destination>`, `replay-<id>`, … */
  readonly stream: string
  /** Null when it is about something else than a message. */
  readonly messageId: MessageId | null
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly position: Position
}

/**
 * The ground truth: one append-only stream per message.
 *
 * - `append` treats each entry on its own: it writes all facts of the entry, with its opening, its
 *   response and its queue change, or nothing of it, and only on top of `expected`. Two writers with
 *   the same `expected` never both succeed. Once it answers `Appended` the facts survive any crash.
 * - On `StoreUnavailable` each entry may or may not have been written. Repeating it is safe: the
 *   repeat then meets `VersionConflict` (or `DuplicateKey`), and the stream shows whose facts are there.
 * - `load` sees every append that was answered before it was asked.
 * - `readAll` gives the facts of all streams, those of `Journals` too, in one order for all readers, never skips
 *   a fact that commits late and shows each exactly once per pass. Facts of one stream may, rarely, come out of version order when their
 *   transactions overlapped: readers gate by version.
 *
 * It leaves out deciding, retrying and any knowledge of what facts mean.
 */
export class EventStore extends Context.Service<
  EventStore,
  {
    readonly load: (id: MessageId) => Effect.Effect<Stream, StoreUnavailable>
    /** Unknown streams are absent from the answer. */
    readonly loadMany: (
      ids: ReadonlyArray<MessageId>
    ) => Effect.Effect<ReadonlyMap<MessageId, Stream>, StoreUnavailable>
    /** Answers in the order of the entries. */
    readonly append: (entries: ReadonlyArray<Append>) => Effect.Effect<ReadonlyArray<AppendResult>, StoreUnavailable>
    /** The message an idempotency key was used up by; null while it is free. */
    readonly acceptedUnder: (
      orgId: OrgId,
      key: string
    ) => Effect.Effect<{ readonly messageId: MessageId; readonly requestHash: string } | null, StoreUnavailable>
    /** `after` is exclusive; null starts at the beginning. */
    readonly readAll: (
      after: Position | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<LoggedFact>, StoreUnavailable>
    readonly extent: Effect.Effect<Extent, StoreUnavailable>
  }
>()("posthaste/application/ports/EventStore") {}
