import { Context } from "effect"
import type { EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { QueueChange } from "../../domain/message/queueChange.ts"
import type { FromStore } from "../errors.ts"
import type { Append, KeyHolder, Position, StreamVersion } from "./EventStore.ts"
import type { NewEvent, PublishResult } from "./Events.ts"
import type { JournalFact } from "./Journals.ts"
import type { StreamKey } from "./StreamKeys.ts"

/** An entry about to be appended, with the id of its first event. */
export interface Intent {
  readonly id: string
  readonly entry: Append
  /** Whether its facts say something of a person; asked only where that matters. */
  readonly isPersonal: () => boolean
}

export type Reservation =
  /** `begun` is the ledger's own time; `key` seals what the facts say of a person. Null: nothing is to be sealed. */
  | { readonly type: "Reserved"; readonly begun: string; readonly key: StreamKey | null }
  | { readonly type: "FenceLost" }
  | { readonly type: "GateClosed" }
  /** The key belongs to this message, which may not be stored yet. */
  | ({ readonly type: "Taken"; readonly sinceMs: number } & KeyHolder)

/** Stored facts of one message, and their effect on the ledger. */
export interface Stored {
  /** The ids of their events. */
  readonly ids: ReadonlyArray<string>
  readonly messageId: MessageId
  /** The facts that the ledger must find too: the first one, and those with a provider's name for the message. */
  readonly copies: ReadonlyArray<JournalFact>
  /** The version at which the body was erased. */
  readonly erased: StreamVersion | null
  readonly queue: QueueChange | null
  /** The version of the fact that made `queue`, and the version it was decided on. */
  readonly version: StreamVersion
  readonly expected: StreamVersion
  /** The place of the last fact in the log; null when it is not known. */
  readonly logAt: bigint | null
}

/** A reader that follows the log; one process at a time is it. */
export type Follower = "queue" | "journals"

export interface FollowerStep {
  readonly from: Position | null
  readonly to: Position
  /** The number of this installation's facts in the step. */
  readonly facts: number
  readonly stored: ReadonlyArray<Stored>
}

/** The first fact of a message that its event owes; with it the message can be made again by whoever finds it. */
export interface OwedMessage extends Omit<JournalFact, "version"> {
  readonly messageId: MessageId
  readonly eventId: EventId
}

/** The stream of a message or of an event, by its name and by the id of what it is about. */
export interface ForgottenStream {
  readonly id: string
  readonly stream: string
}

export interface JournalEntry extends JournalFact {
  readonly journal: string
  readonly position: Position
}

/**
 * The data of messages that can't be stored with their facts: the queue, bodies and answers, idempotency keys, fences
 * and gates. It serves an event store that can't write both in one transaction.
 *
 * - `reserve` comes before an append. From then on the ledger keeps the entry's data under the intent's id, and the key
 *   is taken. Fences and gates are judged at that moment. A message that enters a line has its place from then on, in the order
 *   of the intents; those behind it wait for its fact, until `withdraw`, or `expireReservations` a few seconds later.
 *   The key of the message is there too, where facts are sealed (see StreamKeys.ts).
 * - `apply` comes after the append and makes the change of the stored facts, once: it may be repeated, race with an
 *   equal call, or come late. More than a minute after `begun` it does nothing.
 * - `withdraw` gives up an intent whose event will never be stored.
 * - `owe` stores events, and that their messages are owed: from then on whoever finds one in `owed` stores it, until
 *   somebody says that it is `settled`. Storing it twice is impossible, because its id is that of its event and
 *   destination.
 * - The follower of the log completes what a crash interrupted: `advance` applies the facts it found and moves its
 *   position in one transaction. It answers false, and changes nothing, when another process is the follower.
 *
 * Of the log itself it knows nothing but positions.
 */
export class Ledger extends Context.Service<
  Ledger,
  {
    /** In the order of the intents. */
    readonly reserve: (intents: ReadonlyArray<Intent>) => FromStore<ReadonlyArray<Reservation>>
    /** Answers in the order of the events. */
    readonly owe: (events: ReadonlyArray<NewEvent>) => FromStore<ReadonlyArray<PublishResult>>
    /** Messages that are owed for a while: whoever should have stored them is gone, or stands still. */
    readonly owed: (limit: number) => FromStore<ReadonlyArray<OwedMessage>>
    readonly settled: (ids: ReadonlyArray<MessageId>) => FromStore<void>
    readonly withdraw: (ids: ReadonlyArray<string>) => FromStore<void>
    readonly apply: (stored: Stored, begun: string) => FromStore<void>
    readonly takenBy: (orgId: OrgId, key: string) => FromStore<KeyHolder | null>
    /** Which of these messages belong to this installation; others may share the log. */
    readonly known: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlySet<MessageId>>
    /** Those of these journals that there are. */
    readonly knownJournals: (names: ReadonlyArray<string>) => FromStore<ReadonlySet<string>>
    /** Takes or keeps a follower's place; null while another process has it. */
    readonly follow: (follower: Follower, holder: string) => FromStore<{ readonly position: Position | null } | null>
    readonly advance: (follower: Follower, holder: string, step: FollowerStep) => FromStore<boolean>
    /** The number of facts that all followers have found. */
    readonly followed: FromStore<number>
    readonly leave: (holder: string) => FromStore<void>
    readonly expireReservations: FromStore<void>
    /** Deletes rows that no `apply` can use any more. `followedTo` is how far the log was followed. */
    readonly tidy: (followedTo: bigint) => FromStore<void>
    /** Facts of journals beyond a position, oldest first. */
    readonly journalsAfter: (position: Position | null, limit: number) => FromStore<ReadonlyArray<JournalEntry>>
    /** This installation's streams after the given one, in the ledger's order: first of messages, then journals. */
    readonly streamsAfter: (stream: string | null, limit: number) => FromStore<ReadonlyArray<string>>
    /** Announces `facts` facts of this message, up to `version`, that are history: they change nothing in the queue. */
    readonly expectHistory: (
      messageId: MessageId,
      version: StreamVersion,
      facts: number,
      copies: ReadonlyArray<JournalFact>
    ) => FromStore<void>
    /** Everything in the log up to `head` is history, and the streams of messages are in the log and nowhere else. */
    readonly adopt: (head: Position | null) => FromStore<void>
    /** Streams that retention has forgotten and that still exist. */
    readonly forgotten: (limit: number) => FromStore<ReadonlyArray<ForgottenStream>>
    readonly forgot: (streams: ReadonlyArray<ForgottenStream>) => FromStore<void>
    /** Intents that are older than a day. */
    readonly leftBehind: (
      limit: number
    ) => FromStore<ReadonlyArray<{ readonly id: string; readonly messageId: MessageId }>>
  }
>()("posthaste/application/ports/Ledger") {}
