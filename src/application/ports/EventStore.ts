import { Context, type DateTime } from "effect"
import type { DestinationId, EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageFact } from "../../domain/message/facts.ts"
import type { QueueChange } from "../../domain/message/queueChange.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import type { FromStore } from "../errors.ts"
import type { Headers } from "./Channels.ts"
import type { JournalFact } from "./Journals.ts"
import type { BatchId } from "./Queue.ts"

/** Number of facts in a stream; 0 means the stream does not exist yet. */
export type StreamVersion = number

export interface Stream {
  readonly version: StreamVersion
  readonly facts: ReadonlyArray<StoredFact>
}

/**
 * The data that is stored together with the first fact of a stream. A replay with another body brings one too: the new
 * body replaces the old one.
 */
export interface Opening {
  /** UTF-8 text, delivered byte for byte; or the text of the event that the message tells of. */
  readonly body: string | BodyOfEvent
  readonly idempotency: UsedKey | null
}

/** Stored once, and shared by the event and all messages it became (see Events.ts). */
export interface BodyOfEvent {
  readonly ofEvent: EventId
}

/** An idempotency key, and the request that used it up. */
export interface UsedKey {
  readonly orgId: OrgId
  readonly key: string
  readonly requestHash: string
}

/** The message that an idempotency key was used for. */
export interface KeyHolder {
  readonly messageId: MessageId
  readonly requestHash: string
}

/** A destination's answer to an attempt; stored beside the facts because it can hold any data and must be erasable. */
export interface AttemptResponse {
  readonly epoch: number
  readonly attempt: number
  /** Empty where there was none. */
  readonly body: string
  readonly headers: Headers | null
}

/** The condition of an attempt's start on its destination: the destination may still be called. */
export interface Gate {
  readonly lane: DestinationId
  readonly generation: number
}

export interface Append {
  readonly messageId: MessageId
  readonly expected: StreamVersion
  readonly facts: ReadonlyArray<MessageFact>
  readonly at: DateTime.Utc
  /** Who is behind it (see commandedBy.ts); null: Posthaste itself. */
  readonly actor: string | null
  /** In whose share of what the store writes at once; null: in nobody's. */
  readonly org: OrgId | null
  /** The queue change of the last of these facts that has one. */
  readonly queue: QueueChange | null
  /** Write only if this batch is still claimed: a worker that lost its lease may not write. */
  readonly fence: BatchId | null
  /** Write only if the lane is not paused and its circuit has seen no change since this generation. */
  readonly gate: Gate | null
  readonly opening: Opening | null
  readonly response: AttemptResponse | null
}

export type AppendResult =
  | { readonly type: "Appended"; readonly version: StreamVersion }
  /** Another writer appended first (or `expected` was never true). Load and decide again. */
  | { readonly type: "VersionConflict" }
  /** The batch in `fence` is no longer claimed. Stop: the message belongs to another worker now. */
  | { readonly type: "FenceLost" }
  /** The lane was paused, or its circuit changed. Nothing was written: the message goes back to wait as it was. */
  | { readonly type: "GateClosed" }
  /** The idempotency key was used before, for this message. Nothing was written. */
  | ({ readonly type: "DuplicateKey" } & KeyHolder)

/** A place in the order of all facts. Opaque; compare only by handing it back. */
export type Position = string

/** The size of the log. */
export interface Extent {
  /** The position of the last fact that `readAll` gives; null while there is none. */
  readonly head: Position | null
  /** The approximate number of facts. */
  readonly facts: number
}

/** A fact of any stream, in its stored form: each reader of the log decodes the facts it knows. */
export interface LoggedFact extends JournalFact {
  /** `message-<id>`, `circuit-<destination>`, `replay-<id>`, … */
  readonly stream: string
  /** Null when the fact is not about a message. */
  readonly messageId: MessageId | null
  readonly position: Position
}

/**
 * The facts of messages: one append-only stream per message. Everything else can be derived from the facts.
 *
 * - `append` treats each entry on its own: it writes all facts of the entry, with its opening, its response and its
 *   queue change, or nothing of it, and only on top of `expected`. Two writers with the same `expected` never both
 *   succeed. Once it answers `Appended` the facts survive any crash.
 * - On `StoreUnavailable` each entry may or may not have been written. Repeating it is safe: the repeat then meets
 *   `VersionConflict` (or `DuplicateKey`), and the stream shows whose facts are there.
 * - `load` sees every append that was answered before the call.
 * - `readAll` gives the facts of all streams, those of `Journals` too, in one order for all readers. It never skips a
 *   fact that commits late, and shows each exactly once per pass. Facts of one stream may, rarely, come out of version
 *   order when their transactions overlapped: readers gate by version.
 * - `unreadSince` also sees facts that readers must still wait for: it tells what they lack, not what they may have.
 *
 * It leaves out deciding, retrying and any knowledge of what facts mean.
 */
export class EventStore extends Context.Service<
  EventStore,
  {
    readonly load: (id: MessageId) => FromStore<Stream>
    /** Unknown streams are absent from the answer. */
    readonly loadMany: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlyMap<MessageId, Stream>>
    /** Answers in the order of the entries. */
    readonly append: (entries: ReadonlyArray<Append>) => FromStore<ReadonlyArray<AppendResult>>
    /** The message that used the idempotency key; null while the key is free. */
    readonly acceptedUnder: (orgId: OrgId, key: string) => FromStore<KeyHolder | null>
    /** `after` is exclusive; null starts at the beginning. */
    readonly readAll: (after: Position | null, limit: number) => FromStore<ReadonlyArray<LoggedFact>>
    /** When the first fact was stored that a reader who has read up to there has not; null when there is none. */
    readonly unreadSince: (after: Position | null) => FromStore<DateTime.Utc | null>
    readonly extent: FromStore<Extent>
  }
>()("posthaste/application/ports/EventStore") {}
