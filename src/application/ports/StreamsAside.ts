import { Context } from "effect"
import type { FromStore } from "../errors.ts"
import type { SetAsideReason } from "./SetAside.ts"

/** Who reads the log and keeps its place there; a projection in each of its generations, anybody else in generation 0. */
export interface AsideReader {
  readonly name: string
  readonly generation: number
}

/** Facts of one stream that a reader passed over, and still owes. */
export interface OwedFacts {
  readonly stream: string
  /** Of these facts, each once, in ascending order. */
  readonly versions: ReadonlyArray<number>
}

export interface StreamAside extends OwedFacts {
  readonly reason: SetAsideReason
  /** What went wrong, in words for whoever repairs it. */
  readonly detail: string
}

/** How long a stream is left alone before its reader tries it again. */
export const TRIED_EVERY_MS = 60_000

/**
 * Streams that readers of the log can't process. Such a reader passes over the facts of that stream alone, owes them from then on, and
 * passes over all later ones of it too, so that no later fact overtakes an earlier one. Once it can process them, it makes up for
 * all that it owes.
 *
 * - A projection owes and makes up in the transaction of its step (see `Step`): a fact is never counted twice. A reader whose work may be
 *   repeated uses `owe` before it moves on, and `madeUp` after it made up.
 * - `owe` adds to what is owed already; said again it changes nothing.
 * - `due` answers streams whose time to be tried has come, each to one caller for a minute.
 * - `madeUp` forgets what is owed, unless more is owed by now.
 * - What a generation owed that no run has any more is nobody's.
 */
export class StreamsAside extends Context.Service<
  StreamsAside,
  {
    /** The streams whose facts the reader owes, and why. */
    readonly of: (reader: AsideReader) => FromStore<ReadonlyMap<string, Pick<StreamAside, "reason" | "detail">>>
    readonly owe: (reader: AsideReader, streams: ReadonlyArray<StreamAside>) => FromStore<void>
    readonly due: (reader: AsideReader, limit: number) => FromStore<ReadonlyArray<OwedFacts>>
    readonly madeUp: (reader: AsideReader, owed: OwedFacts) => FromStore<void>
  }
>()("posthaste/application/ports/StreamsAside") {}
