import { Context, type DateTime } from "effect"
import type { ChannelName, MessageId } from "../../domain/ids.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

/** The ends of the times that things are kept for; null: for ever. An org's own days count from `now`. */
export interface Before {
  readonly now: DateTime.Utc
  /** Of messages that ended well, and of events. */
  readonly ended: DateTime.Utc | null
  /** Of dead letters and of messages SENT, and of removed destinations. */
  readonly dead: DateTime.Utc | null
  readonly daysMax: number | null
}

export interface EndedMessage {
  readonly id: MessageId
  readonly version: StreamVersion
}

/**
 * Deletes old things that are over.
 *
 * - `find` looks at the next `limit` messages and answers those whose days are over, by the ending or, for one SENT,
 *   the last fact. Not among them: dead letters that hold a line, and messages with facts that a follower or a rebuild
 *   has yet to read. One that has stood still for a day is not waited for.
 * - `forget` deletes messages with all their data; one that has gone on since stays. Null, and nothing happens, while
 *   another process does the same.
 * - `forgetEvents` deletes, of the next `limit`, events without messages.
 * - `forgetDestinations` deletes up to `limit` removed destinations with empty lanes, and their journals, whose
 *   prefixes `journals` has by channel. Messages may still name them.
 */
export class Retention extends Context.Service<
  Retention,
  {
    readonly find: (
      before: Before,
      from: string | null,
      limit: number
    ) => FromStore<{ readonly messages: ReadonlyArray<EndedMessage>; readonly next: string | null }>
    readonly forget: (messages: ReadonlyArray<EndedMessage>) => FromStore<number | null>
    readonly forgetEvents: (
      before: Before,
      from: string | null,
      limit: number
    ) => FromStore<{ readonly removed: number; readonly next: string | null }>
    readonly forgetDestinations: (
      removedBefore: DateTime.Utc,
      journals: ReadonlyMap<ChannelName, string>,
      limit: number
    ) => FromStore<number>
  }
>()("posthaste/application/ports/Retention") {}
