import { Context, type DateTime, type Effect, type Scope } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { FromStore, StoreUnavailable } from "../errors.ts"
import type { Position, StreamVersion } from "./EventStore.ts"

/** Facts of one message that were, or are to be, appended together. */
export interface Writing {
  readonly messageId: MessageId
  readonly expected: StreamVersion
  /** Names the append: it is the same for every repeat of it, and no other append's. */
  readonly writing: string
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly facts: ReadonlyArray<RecordedFact>
}

/** A piece of the log of all streams. */
export interface Heard {
  /** The highest version that was heard of each message. */
  readonly versions: ReadonlyMap<MessageId, StreamVersion>
  readonly writings: ReadonlyArray<string>
  /** The end of the piece. */
  readonly position: Position
}

/**
 * The streams of messages in another store, where they are the truth and PostgreSQL's log a copy.
 *
 * - `append` writes all facts or none, and only on top of `expected`. A repeat of a writing that is there answers `Appended`. Two writings
 *   with one `expected` never both succeed. `Removed`: the stream has ended for good.
 * - `read` gives what was appended after a version, in order; nothing for a stream that was removed or never was.
 * - `remove` ends a stream for good, also one that never was. With `unless` "there" it does so only while the stream has no facts, and
 *   answers false, having done nothing, where it has some.
 * - `follow` gives the log from beyond a position on, with what belongs to other users of the store.
 */
export class Streams extends Context.Service<
  Streams,
  {
    readonly append: (writing: Writing) => FromStore<"Appended" | "VersionConflict" | "Removed">
    readonly read: (id: MessageId, after: StreamVersion) => FromStore<ReadonlyArray<Writing>>
    readonly remove: (id: MessageId, unless?: "there") => FromStore<boolean>
    readonly follow: (
      after: Position | null
    ) => Effect.Effect<{ readonly take: Effect.Effect<Heard, StoreUnavailable> }, never, Scope.Scope>
  }
>()("posthaste/application/ports/Streams") {}
