import { Context, type Effect, type Order, Schema } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { LoggedFact, Position } from "./EventStore.ts"

/** A fact as it is kept outside of a store: where it stands in the log is up to the store it comes into. */
export type ArchivedFact = Omit<LoggedFact, "messageId" | "position">

/** The stream is not where this fact would follow. Somebody else wrote to the store meanwhile. */
export class NotContinued extends Schema.TaggedError<NotContinued>()("NotContinued", {
  stream: Schema.String,
  version: Schema.Int
}) {
  override get message(): string {
    return `${this.stream} can't go on with version ${this.version}: somebody else writes to this store`
  }
}

/**
 * The ground truth as a whole, for whoever checks, copies or moves it: facts of messages and journals alike, in
 * their stored form and as they are, also where they are not what they should be.
 *
 * - `byStream` gives every fact that was stored when it was first asked, the facts of one stream together and in
 *   the order of their versions. `after` is the last fact that was seen; the order of the streams is the store's.
 * - `restore` writes facts on top of what is there, with version, time and actor as they were and in the order
 *   given, which becomes their order in the log. Each has to be the next of its stream. Where it fails, a part of
 *   them may have been written, and only from the front.
 *   It changes nothing but the log: neither queue nor bodies nor lanes.
 * - `adopt` makes this log the one that the database stands on, once all of it was restored and before anybody works
 *   on it: what the store keeps beside its log is made, and what followed another one goes on from the end of this.
 *
 * It leaves out what stands beside the facts (see MessageData.ts and DerivedRows.ts).
 */
export class Archive extends Context.Service<
  Archive,
  {
    readonly byStream: (
      after: LoggedFact | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<LoggedFact>, StoreUnavailable>
    /** All facts of these, by version. Streams that do not exist are absent. */
    readonly streams: (
      names: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<LoggedFact>>, StoreUnavailable>
    /** Which of these messages have a stream. */
    readonly known: (ids: ReadonlyArray<MessageId>) => Effect.Effect<ReadonlySet<MessageId>, StoreUnavailable>
    /** Which of two positions comes first in the log. */
    readonly order: Order.Order<Position>
    readonly adopt: Effect.Effect<void, StoreUnavailable>
    readonly restore: (facts: ReadonlyArray<ArchivedFact>) => Effect.Effect<void, NotContinued | StoreUnavailable>
  }
>()("posthaste/application/ports/Archive") {}
