import { Context, type DateTime, type Effect, type Scope } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { Position, StreamVersion } from "./EventStore.ts"
import type { FromStore, StoreUnavailable } from "./errors.ts"

export interface Writing {
  readonly messageId: MessageId
  readonly expected: StreamVersion
  /** Names the append: the same for its repeats, and only for them. */
  readonly writing: string
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly facts: ReadonlyArray<RecordedFact>
}

export interface Heard {
  /** The highest version of each message in it. */
  readonly versions: ReadonlyMap<MessageId, StreamVersion>
  readonly writings: ReadonlyArray<string>
  readonly position: Position
}

/**
 * The streams of messages in another store, where they are the truth and PostgreSQL's log a copy.
 *
 * - `append` writes all facts or none, and only on top of `expected`; of two writings with one `expected` one
 *   succeeds. A repeat of a stored writing answers `Appended`. `Removed`: the stream has ended for good.
 * - `read` gives what was appended after a version, in order; nothing for a removed or unknown stream.
 * - `remove` ends a stream for good, also one that never was; with `unless` "there" only while it has no facts, else
 *   false.
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
