import { Context, type DateTime } from "effect"
import type { DestinationId, EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { MessageFact } from "../../domain/message/facts.ts"
import type { QueueChange } from "../../domain/message/queueChange.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import type { Headers } from "./Channels.ts"
import type { FromStore } from "./errors.ts"
import type { JournalFact } from "./Journals.ts"
import type { BatchId } from "./Queue.ts"

export type StreamVersion = number

export interface Stream {
  readonly version: StreamVersion
  readonly facts: ReadonlyArray<StoredFact>
}

export interface Opening {
  /** UTF-8 text, delivered byte for byte; or the text of the message's event. */
  readonly body: string | BodyOfEvent
  readonly idempotency: UsedKey | null
}

/** Stored once, and shared by the event and all its messages (Events.ts). */
export interface BodyOfEvent {
  readonly ofEvent: EventId
}

export interface UsedKey {
  readonly orgId: OrgId
  readonly key: string
  readonly requestHash: string
}

export interface KeyHolder {
  readonly messageId: MessageId
  readonly requestHash: string
}

/** A destination's answer to an attempt; stored beside the facts because it must be erasable. */
export interface AttemptResponse {
  readonly epoch: number
  readonly attempt: number
  readonly body: string
  readonly headers: Headers | null
}

/** The condition of an attempt's start: the lane is not paused, and its circuit unchanged since this generation. */
export interface Gate {
  readonly lane: DestinationId
  readonly generation: number
}

export interface Append {
  readonly messageId: MessageId
  readonly expected: StreamVersion
  readonly facts: ReadonlyArray<MessageFact>
  readonly at: DateTime.Utc
  readonly actor: string | null
  /** The queue change of the last of these facts that has one. */
  readonly queue: QueueChange | null
  /** Write only if this batch is still claimed: a worker that lost its lease may not write. */
  readonly fence: BatchId | null
  readonly gate: Gate | null
  readonly opening: Opening | null
  readonly response: AttemptResponse | null
}

export type AppendResult =
  | { readonly type: "Appended"; readonly version: StreamVersion }
  /** Another writer was first. Load and decide again. */
  | { readonly type: "VersionConflict" }
  /** The batch in `fence` is not claimed: the message belongs to another worker. */
  | { readonly type: "FenceLost" }
  /** The gate is closed. Nothing was written: the message waits as before. */
  | { readonly type: "GateClosed" }
  /** The idempotency key was used for this message. Nothing was written. */
  | ({ readonly type: "DuplicateKey" } & KeyHolder)

/** A place in the order of all facts. Opaque; compare only by handing it back. */
export type Position = string

export interface Extent {
  readonly head: Position | null
  readonly facts: number
}

/** A fact of any stream, in its stored form. */
export interface LoggedFact extends JournalFact {
  /** `message-<id>`, `circuit-<destination>`, `replay-<id>`, … */
  readonly stream: string
  readonly messageId: MessageId | null
  readonly position: Position
}

/**
 * The facts of messages: one append-only stream per message.
 *
 * - `append` writes, for each entry alone, all facts with opening, response and queue change, or nothing, and only on
 *   top of `expected`. Two writers with the same `expected` never both succeed. After `Appended` the facts survive any
 *   crash.
 * - On `StoreUnavailable` each entry may or may not have been written. A repeat then meets `VersionConflict` or
 *   `DuplicateKey`.
 * - `load` sees every append that was answered before the call.
 * - `readAll` gives the facts of all streams, of `Journals` too, in one order for all readers, each once per pass,
 *   and never skips one that commits late. Facts of one stream whose transactions overlapped may come out of order:
 *   readers gate by version.
 * - `unreadSince` also sees facts that readers must still wait for.
 */
export class EventStore extends Context.Service<
  EventStore,
  {
    readonly load: (id: MessageId) => FromStore<Stream>
    readonly loadMany: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlyMap<MessageId, Stream>>
    /** Answers in the order of the entries. */
    readonly append: (entries: ReadonlyArray<Append>) => FromStore<ReadonlyArray<AppendResult>>
    readonly acceptedUnder: (orgId: OrgId, key: string) => FromStore<KeyHolder | null>
    readonly readAll: (after: Position | null, limit: number) => FromStore<ReadonlyArray<LoggedFact>>
    /** The time of the first fact after a position; null when there is none. */
    readonly unreadSince: (after: Position | null) => FromStore<DateTime.Utc | null>
    readonly extent: FromStore<Extent>
  }
>()("posthaste/application/ports/EventStore") {}
