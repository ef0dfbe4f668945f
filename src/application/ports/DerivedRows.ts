import { Context, type DateTime } from "effect"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { EventPublished } from "../../domain/event/facts.ts"
import type { DestinationId, EventId, MessageId, ReplayId } from "../../domain/ids.ts"
import type { Place, Wait } from "../../domain/message/place.ts"
import type { ReplayRequested } from "../../domain/replay/facts.ts"
import type { FromStore } from "../errors.ts"
import type { Position } from "./EventStore.ts"

export interface Lookup {
  readonly messageId: MessageId
  /** Null: the message is in no queue; only its place in a line is looked for. */
  readonly wait: Wait | null
}

/** The rows of one message, all at one moment. */
export interface DerivedState {
  /** Whether a row in its lane equals the asked `wait`, due time and all. */
  readonly isReady: boolean
  /** How many batches hold it since it began to wait. */
  readonly held: number
  readonly isParked: boolean
  readonly linePlace: { readonly lane: DestinationId; readonly line: string; readonly state: LinePosition } | null
  readonly hasBody: boolean
  /** The row of the list as JSON (`rowOf` in MessageViews.ts); null when there is none. */
  readonly view: unknown
  /** How far the projection had read. */
  readonly viewsAt: Position | null
}

/** Waiting behind another message, given to the queue, or dead and blocking its line. */
export type LinePosition = "WAITING" | "GIVEN" | "DEAD"

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

export interface EventRows {
  readonly isListed: boolean
  readonly hasBody: boolean
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
 * - `look` answers the rows of each message as of one moment.
 * - `ready`, `messagesInLines` and `owners` list the rows that exist, whatever the facts say: rows of the queue,
 *   messages in lines, and messages that own a body, an answer, a key or a view.
 * - `restore…` add missing rows, so they may be repeated. Restored messages of one line stand in it in the order they come. A message
 *   under way is restored as held by a worker that is gone, and is recovered as after any crash. A message that a batch holds, or that
 *   has facts after `read`, stays as it is. Who is restored is un-parked in the same transaction: `restoreQueue` answers how many were.
 */
export class DerivedRows extends Context.Service<
  DerivedRows,
  {
    readonly look: (asked: ReadonlyArray<Lookup>) => FromStore<ReadonlyMap<MessageId, DerivedState>>
    /** `after` is the `next` of the page before; null begins. */
    readonly ready: (
      after: string | null,
      limit: number
    ) => FromStore<{ readonly rows: ReadonlyArray<ReadyRow>; readonly next: string | null }>
    readonly messagesInLines: (after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly owners: (after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    /** Lines whose head was not given to the queue, or where another message was given. */
    readonly brokenLines: FromStore<ReadonlyArray<{ readonly lane: DestinationId; readonly line: string }>>
    /** Counts that differ from the number of views, in words. */
    readonly wrongCounts: FromStore<ReadonlyArray<string>>
    /** What is kept of each event beside its facts. */
    readonly eventRows: (ids: ReadonlyArray<EventId>) => FromStore<ReadonlyMap<EventId, EventRows>>
    /** Bodies that nobody has, and bodies that messages should have and that are not there, in words. */
    readonly brokenBodies: FromStore<ReadonlyArray<{ readonly eventId: EventId; readonly detail: string }>>
    /** Keys that stored texts are sealed with and that are not there: nobody can open these texts. */
    readonly lostKeys: FromStore<ReadonlyArray<{ readonly key: string; readonly detail: string }>>
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
