import { Context, type Redacted } from "effect"
import type { FromStore } from "../errors.ts"

/**
 * "Erased": it was thrown away, and none comes in its place. "Shut": it is there, and the encryption key that opens it is not, or it
 * was changed.
 */
export type StreamKey = Redacted.Redacted<Uint8Array> | "Erased" | "Shut"

/**
 * A key of its own for each stream whose facts are kept where no fact can be changed: what they say of a person is sealed with it, and
 * is gone with it. A message gets its key with `Ledger.reserve`, before its fact is written. An erasure throws keys away, in the
 * transaction that erases everything here; forgetting a stream deletes its key.
 *
 * Facts that were written before they were sealed stay in the clear. Whoever erases a stream leaves it in `erased`, until somebody has
 * looked whether it had such facts.
 */
export class StreamKeys extends Context.Service<
  StreamKeys,
  {
    /** By the names of streams; those that have none are absent. */
    readonly of: (streams: ReadonlyArray<string>) => FromStore<ReadonlyMap<string, StreamKey>>
    /** The same. Where facts are sealed, those that have none get one, which is on disk when this answers. */
    readonly make: (streams: ReadonlyArray<string>) => FromStore<ReadonlyMap<string, StreamKey>>
    /** Names of streams that were erased here, and that nobody has looked at since. */
    readonly erased: (limit: number) => FromStore<ReadonlyArray<string>>
    /** These were looked at; `forgotten`: those of messages that had to go with their facts. */
    readonly lookedAt: (streams: ReadonlyArray<string>, forgotten: ReadonlyArray<string>) => FromStore<void>
  }
>()("posthaste/application/ports/StreamKeys") {}
