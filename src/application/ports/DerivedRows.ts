import { Context, type DateTime } from "effect"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import type { DestinationId, EventId, MessageId, ReplayId } from "../../domain/ids.ts"
import type { Place, Wait } from "../../domain/message/place.ts"
import type { ReplayRequested } from "../../domain/replay/facts.ts"
import type { FromStore } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"

/** The place of a message by its facts up to `version`. */
export interface ExpectedMessage {
  readonly messageId: MessageId
  readonly version: StreamVersion
  readonly place: Place
}

/** The rows of one message, all at one moment. */
export interface ComparedMessage {
  /** It is once where its facts put it, or parked. */
  readonly isPlaced: boolean
  readonly hasBody: boolean
  /** The row of the list as JSON (`rowOf` in MessageViews.ts); null when there is none. */
  readonly listed: { readonly version: StreamVersion; readonly row: unknown } | null
}

/** Rows that are wrong: where, how many, and a few of them in words. */
export interface Finding {
  readonly table: string
  readonly count: number
  readonly examples: ReadonlyArray<string>
}

export interface ReadyRow extends Omit<Wait, "line"> {
  readonly messageId: MessageId
}

/** Where the facts up to `read` put a message. A dead letter may hold its place in a line. */
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
 * The rows that are derived from the facts, for the check that they agree and for restoring them where only the facts
 * were moved.
 *
 * - `compare` looks at the rows of messages; one that has facts after `version` is absent.
 * - `strays` are rows that no fact explains, and rows that contradict each other: rows of messages without facts, lines whose head was not
 *   given to the queue, messages and events that are not in their list, counts, shared bodies, and texts whose data key is gone.
 * - `ready` and `messagesInLines` list the rows that exist, whatever the facts say.
 * - `restore…` add missing rows, so they may be repeated. Restored messages of one line stand in it in the order they come. A message
 *   under way is restored as held by a worker that is gone, and is recovered as after any crash. A message that a batch holds, or that
 *   has facts after `read`, stays as it is. Who is restored is un-parked in the same transaction: `restoreQueue` answers how many were.
 */
export class DerivedRows extends Context.Service<
  DerivedRows,
  {
    readonly compare: (messages: ReadonlyArray<ExpectedMessage>) => FromStore<ReadonlyMap<MessageId, ComparedMessage>>
    readonly strays: FromStore<ReadonlyArray<Finding>>
    /** `after` is the `next` of the page before; null begins. */
    readonly ready: (
      after: string | null,
      limit: number
    ) => FromStore<{ readonly rows: ReadonlyArray<ReadyRow>; readonly next: string | null }>
    readonly messagesInLines: (after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly restoreEvents: (events: ReadonlyArray<RestoredEvent>) => FromStore<void>
    /** That events became these messages. */
    readonly restoreFanOut: (messages: ReadonlyArray<RestoredMessageOfEvent>) => FromStore<void>
    readonly restoreQueue: (rows: ReadonlyArray<Restored>) => FromStore<number>
    /** Removes rows of the queue as they were found. */
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
