import { Context, type DateTime, type Effect } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import type { QueueChange } from "../../domain/message/queueChange.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { Append, Position, StreamVersion } from "./EventStore.ts"

/** An entry about to be appended, named by the id that its first event will have. */
export interface Intent {
  readonly id: string
  readonly entry: Append
}

export type Reservation =
  /** `begun` is the ledger's own time. */
  | { readonly type: "Reserved"; readonly begun: string }
  | { readonly type: "FenceLost" }
  | { readonly type: "GateClosed" }
  /** The key belongs to this message, which may not be stored yet. */
  | {
      readonly type: "Taken"
      readonly messageId: MessageId
      readonly requestHash: string
      readonly sinceMs: number
    }

export interface Copy extends RecordedFact {
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
}

/** Facts of one message that are known to be stored, and what they mean. */
export interface Stored {
  /** Ids of their events. */
  readonly ids: ReadonlyArray<string>
  readonly messageId: MessageId
  /** Those that have to be found beside the queue too: the first, and those that tell a provider's name for it. */
  readonly copies: ReadonlyArray<Copy>
  /** The version at which the body was erased. */
  readonly erased: StreamVersion | null
  readonly queue: QueueChange | null
  /** The version whose change `queue` is, and the one it was decided on top of. */
  readonly version: StreamVersion
  readonly expected: StreamVersion
  /** Where in the log the last of them is; null when that is not known. */
  readonly logAt: bigint | null
}

/** Something that follows a log: one process at a time does. */
export type Follower = "queue" | "journals"

export interface FollowerStep {
  readonly from: Position | null
  readonly to: Position
  /** How many facts of ours are in it. */
  readonly facts: number
  readonly stored: ReadonlyArray<Stored>
}

export interface JournalEntry extends RecordedFact {
  readonly journal: string
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly position: Position
}

/**
 * What belongs to the facts of messages but can't be kept where the facts are: the queue, bodies and answers,
 * idempotency keys, fences and gates. It serves an event store that can't write both in one transaction.
 *
 * - `reserve` comes before an append. What comes with the entry is kept from then on, under the intent's id; a key
 *   is taken. Fences and gates are judged as they are at that moment.
 * - `apply` comes after it and makes the change that the stored facts mean, once: it may be repeated, may race
 *   with others who apply the same, and may come late. Whoever comes more than a minute after `begun` does nothing.
 * - `withdraw` gives up an intent whose event will never be stored.
 * - What crashed in between is made up for by the follower of the log: `advance` applies what it found and moves its
 *   position in one transaction, and answers false, having changed nothing, when it is not its turn any more.
 *
 * Of the log itself it knows nothing but positions.
 */
export class Ledger extends Context.Service<
  Ledger,
  {
    /** Answers in the order asked. */
    readonly reserve: (intents: ReadonlyArray<Intent>) => Effect.Effect<ReadonlyArray<Reservation>, StoreUnavailable>
    readonly withdraw: (ids: ReadonlyArray<string>) => Effect.Effect<void, StoreUnavailable>
    readonly apply: (stored: Stored, begun: string) => Effect.Effect<void, StoreUnavailable>
    readonly takenBy: (
      orgId: OrgId,
      key: string
    ) => Effect.Effect<{ readonly messageId: MessageId; readonly requestHash: string } | null, StoreUnavailable>
    /** Which of these messages are ours; a log may be shared with strangers. */
    readonly known: (ids: ReadonlyArray<MessageId>) => Effect.Effect<ReadonlySet<MessageId>, StoreUnavailable>
    readonly knownJournals: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, StoreUnavailable>
    /** Takes or keeps a follower's place. Null while another one has it. */
    readonly follow: (
      follower: Follower,
      holder: string
    ) => Effect.Effect<{ readonly position: Position | null } | null, StoreUnavailable>
    readonly advance: (
      follower: Follower,
      holder: string,
      step: FollowerStep
    ) => Effect.Effect<boolean, StoreUnavailable>
    /** How many facts all followers have found. */
    readonly followed: Effect.Effect<number, StoreUnavailable>
    readonly leave: (holder: string) => Effect.Effect<void, StoreUnavailable>
    /** Forgets what is only needed while somebody may still apply it. `followedTo`: up to there the log was followed. */
    readonly tidy: (followedTo: bigint) => Effect.Effect<void, StoreUnavailable>
    /** Facts of journals beyond a position, oldest first. */
    readonly journalsAfter: (
      position: Position | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<JournalEntry>, StoreUnavailable>
    /** Streams of ours beyond this one: those of messages, then journals. The order is the ledger's. */
    readonly streamsAfter: (
      stream: string | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
    /** So many facts of this message will come, up to `version`, that are history: they mean nothing to the queue. */
    readonly expectHistory: (
      messageId: MessageId,
      version: StreamVersion,
      facts: number,
      copies: ReadonlyArray<Copy>
    ) => Effect.Effect<void, StoreUnavailable>
    /** All that is in the log up to there is history, and the streams of messages are there and nowhere else. */
    readonly adopt: (head: Position | null) => Effect.Effect<void, StoreUnavailable>
    /** Messages that retention has forgotten and whose streams are still there. */
    readonly forgotten: (limit: number) => Effect.Effect<ReadonlyArray<MessageId>, StoreUnavailable>
    readonly forgot: (ids: ReadonlyArray<MessageId>) => Effect.Effect<void, StoreUnavailable>
    /** Intents that are older than a day. */
    readonly leftBehind: (
      limit: number
    ) => Effect.Effect<ReadonlyArray<{ readonly id: string; readonly messageId: MessageId }>, StoreUnavailable>
  }
>()("posthaste/application/ports/Ledger") {}
