import { Context, type Effect } from "effect"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, MessageId, ReplayId } from "../../domain/ids.ts"
import type { Place, Wait } from "../../domain/message/place.ts"
import type { ReplayRequested } from "../../domain/replay/facts.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { Position } from "./EventStore.ts"

export interface Lookup {
  readonly messageId: MessageId
  /** Null: it is in no queue; only what stands in a line is looked for. */
  readonly wait: Wait | null
}

/** What there is about one message, all of one moment. */
export interface DerivedState {
  /** A row in its lane that says exactly what was asked for, due time and all. */
  readonly isReady: boolean
  /** How many batches hold it as it was when it began to wait. */
  readonly held: number
  readonly linePlace: { readonly lane: DestinationId; readonly line: string; readonly state: LinePosition } | null
  readonly hasBody: boolean
  /** As JSON; null when there is none. */
  readonly view: unknown
  /** What lists are searched by says the same as the view itself. */
  readonly isViewFindable: boolean
  /** How far the views had read. */
  readonly viewsAt: Position | null
}

/** Waiting behind another message, given to the queue, or dead and blocking its line. */
export type LinePosition = "WAITING" | "GIVEN" | "DEAD"

export interface ReadyRow extends Omit<Wait, "line"> {
  readonly messageId: MessageId
}

export interface Restored {
  readonly messageId: MessageId
  readonly place:
    | Exclude<Place, { readonly type: "Out" }>
    | { readonly type: "Dead"; readonly lane: DestinationId; readonly line: string }
}

/**
 * What is derived from the facts, seen from outside: for whoever checks that it agrees with them, and for whoever
 * has to make it again because only the facts were moved.
 *
 * - `look` answers for each message what one moment showed of it.
 * - `ready`, `turns` and `owners` list what there is, whatever the facts say: rows of the queue, messages that
 *   stand in a line, and messages that a body, an answer, a key or a view belongs to.
 * - `restore…` add what is missing and change nothing that is there, so they may be repeated. Restored messages
 *   of one line stand in it in the order they come. One that was under way comes back as held by a worker that
 *   is gone: whoever takes it over finds out what became of it, as after any crash.
 */
export class DerivedRows extends Context.Service<
  DerivedRows,
  {
    readonly look: (
      asked: ReadonlyArray<Lookup>
    ) => Effect.Effect<ReadonlyMap<MessageId, DerivedState>, StoreUnavailable>
    /** `after` is what the page before named as `next`; null where there was none left. */
    readonly ready: (
      after: string | null,
      limit: number
    ) => Effect.Effect<{ readonly rows: ReadonlyArray<ReadyRow>; readonly next: string | null }, StoreUnavailable>
    readonly messagesInLines: (
      after: MessageId | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<MessageId>, StoreUnavailable>
    readonly owners: (
      after: MessageId | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<MessageId>, StoreUnavailable>
    /** Lines whose head was not given to the queue, or where another message was. */
    readonly brokenLines: Effect.Effect<
      ReadonlyArray<{ readonly lane: DestinationId; readonly line: string }>,
      StoreUnavailable
    >
    /** Counts that are not the number of views, in words. */
    readonly wrongCounts: Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
    readonly restoreQueue: (rows: ReadonlyArray<Restored>) => Effect.Effect<void, StoreUnavailable>
    readonly restoreCircuits: (
      circuits: ReadonlyArray<{ readonly destination: DestinationId; readonly state: CircuitState }>
    ) => Effect.Effect<void, StoreUnavailable>
    /** As jobs that nobody works on any more: which messages they were for is not among the facts. */
    readonly restoreReplays: (
      replays: ReadonlyArray<{ readonly id: ReplayId; readonly request: ReplayRequested }>
    ) => Effect.Effect<void, StoreUnavailable>
    /** Projections and alerting read the log from its beginning again: positions of another store mean nothing. */
    readonly forgetPositions: Effect.Effect<void, StoreUnavailable>
  }
>()("posthaste/application/ports/DerivedRows") {}
