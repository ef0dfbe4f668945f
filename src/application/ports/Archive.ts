import { Context, type Effect, type Order, Schema } from "effect"
import type { Restoration } from "../../domain/message/explanation/restoration.ts"
import type { FromStore, StoreUnavailable } from "../errors.ts"
import type { LoggedFact, Position } from "./EventStore.ts"

/** A fact outside of a store: its place in the log is decided by the store that it comes into. */
export type ArchivedFact = Omit<LoggedFact, "messageId" | "position">

/** The stream does not end before this fact: another process wrote to the store meanwhile. */
export class NotContinued extends Schema.TaggedError<NotContinued>()("NotContinued", {
  stream: Schema.String,
  version: Schema.Int
}) {
  override get message(): string {
    return `${this.stream} can't go on with version ${this.version}: another process writes to this store`
  }
}

/**
 * All facts, for checking, copying and moving them: facts of messages and journals alike, in their stored form and
 * unchanged, even where they break a rule.
 *
 * - `byStream` gives every fact that was stored at the first call, the facts of one stream together and in the order of
 *   their versions. `after` is the last fact that was read; the order of the streams is the store's.
 * - `restore` writes facts on top of the existing ones, with their version, time and actor and in the given order,
 *   which becomes their order in the log. Each has to be the next of its stream. A failure may leave some of them
 *   written, and only the first ones. The audit lists them and their withdrawals are open as where they come from; neither
 *   queue nor bodies nor lanes change.
 *
 * It leaves out the data beside the facts (see MessageData.ts and DerivedRows.ts).
 */
export class Archive extends Context.Service<
  Archive,
  {
    readonly byStream: (after: LoggedFact | null, limit: number) => FromStore<ReadonlyArray<LoggedFact>>
    /** All facts of these streams, by version. Streams that do not exist are absent. */
    readonly streams: (names: ReadonlyArray<string>) => FromStore<ReadonlyMap<string, ReadonlyArray<LoggedFact>>>
    /** When the store was found to know no more than an earlier moment, because it was restored from a backup. Oldest first. */
    readonly restorations: FromStore<ReadonlyArray<Restoration>>
    /** Which of two positions comes first in the log. */
    readonly order: Order.Order<Position>
    readonly restore: (facts: ReadonlyArray<ArchivedFact>) => Effect.Effect<void, NotContinued | StoreUnavailable>
  }
>()("posthaste/application/ports/Archive") {}
