import { Context, type DateTime } from "effect"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import type { DestinationId, EventId, MessageId, ReplayId } from "../../domain/ids.ts"
import type { Place, Wait } from "../../domain/message/place.ts"
import type { ReplayRequested } from "../../domain/replay/facts.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

export interface ExpectedMessage {
  readonly messageId: MessageId
  readonly version: StreamVersion
  readonly place: Place
}

export interface ComparedMessage {
  /** It is once where its facts put it, or parked. */
  readonly isPlaced: boolean
  readonly hasBody: boolean
  /** The row of the list as JSON (`rowOf` in MessageViews.ts). */
  readonly listed: { readonly version: StreamVersion; readonly row: unknown } | null
}

export interface Finding {
  readonly table: string
  readonly count: number
  readonly examples: ReadonlyArray<string>
}

export interface ReadyRow extends Omit<Wait, "line"> {
  readonly messageId: MessageId
}

/** The place of a message by the facts up to `read`. A dead letter may hold its place in a line. */
export interface Restored {
  readonly messageId: MessageId
  readonly read: number
  readonly place:
    | Exclude<Place, { readonly type: "Out" }>
    | { readonly type: "Dead"; readonly lane: DestinationId; readonly line: string }
    | { readonly type: "Out" }
}

export interface RestoredEvent {
  readonly id: EventId
  readonly fact: EventPublished
  readonly at: DateTime.Utc
}

export interface RestoredMessageOfEvent {
  readonly eventId: EventId
  readonly destination: DestinationId
  readonly messageId: MessageId
}

/**
 * The rows that are derived from the facts, for checking and restoring them.
 *
 * - `compare` looks at the rows of messages; one that has facts after `version` is absent.
 * - `strays` are rows that no fact explains or that contradict each other.
 * - `ready` and `messagesInLines` list the rows that exist, whatever the facts say.
 * - `restore…` add missing rows, and may be repeated. Messages of one line stand in the order they come; one under
 *   way is held by a worker that is gone; one that a batch holds, or that has facts after `read`, stays as it is.
 *   Restored messages are un-parked in the same transaction; `restoreQueue` answers their number.
 */
export class DerivedRows extends Context.Service<
  DerivedRows,
  {
    readonly compare: (messages: ReadonlyArray<ExpectedMessage>) => FromStore<ReadonlyMap<MessageId, ComparedMessage>>
    readonly strays: FromStore<ReadonlyArray<Finding>>
    readonly ready: (
      after: string | null,
      limit: number
    ) => FromStore<{ readonly rows: ReadonlyArray<ReadyRow>; readonly next: string | null }>
    readonly messagesInLines: (after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly restoreEvents: (events: ReadonlyArray<RestoredEvent>) => FromStore<void>
    /** Restores that events became these messages. */
    readonly restoreFanOut: (messages: ReadonlyArray<RestoredMessageOfEvent>) => FromStore<void>
    readonly restoreQueue: (rows: ReadonlyArray<Restored>) => FromStore<number>
    readonly dropReady: (rows: ReadonlyArray<ReadyRow>) => FromStore<void>
    readonly restoreCircuits: (
      circuits: ReadonlyArray<{ readonly destination: DestinationId; readonly state: CircuitState }>
    ) => FromStore<void>
    /** As jobs without work left: the selection of their dead letters is not among the facts. */
    readonly restoreReplays: (
      replays: ReadonlyArray<{ readonly id: ReplayId; readonly request: ReplayRequested }>
    ) => FromStore<void>
  }
>()("posthaste/application/ports/DerivedRows") {}
