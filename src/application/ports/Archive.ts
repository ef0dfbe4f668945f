import { Context, type Effect, type Order, Schema } from "effect"
import type { Restoration } from "../../domain/message/explanation/surroundings.ts"
import type { LoggedFact, Position } from "./EventStore.ts"
import type { FromStore, StoreUnavailable } from "./errors.ts"

export type ArchivedFact = Omit<LoggedFact, "messageId" | "position">

export class NotContinued extends Schema.TaggedError<NotContinued>()("NotContinued", {
  stream: Schema.String,
  version: Schema.Int
}) {
  override get message(): string {
    return `${this.stream} can't go on with version ${this.version}: another process writes to this store`
  }
}

/**
 * All facts in their stored form, for checking and moving them, even where they break a rule. The data beside them:
 * MessageData.ts, DerivedRows.ts.
 *
 * - `byStream` gives every fact that was stored at the first call, by stream and version. `after` is the last fact
 *   that was read.
 * - `restore` appends facts with their version, time and actor, in the given order. Each has to be the next of its
 *   stream. A failure may leave the first ones written. The audit and open withdrawals follow; queue, bodies and lanes
 *   do not change.
 */
export class Archive extends Context.Service<
  Archive,
  {
    readonly byStream: (after: LoggedFact | null, limit: number) => FromStore<ReadonlyArray<LoggedFact>>
    readonly streams: (names: ReadonlyArray<string>) => FromStore<ReadonlyMap<string, ReadonlyArray<LoggedFact>>>
    /** Times of restoring the store from a backup. Oldest first. */
    readonly restorations: FromStore<ReadonlyArray<Restoration>>
    readonly order: Order.Order<Position>
    readonly restore: (facts: ReadonlyArray<ArchivedFact>) => Effect.Effect<void, NotContinued | StoreUnavailable>
  }
>()("posthaste/application/ports/Archive") {}
