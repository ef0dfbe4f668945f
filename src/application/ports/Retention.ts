import { Context, type DateTime } from "effect"
import type { ChannelName, MessageId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"

/** The ends of the days that things are kept for. Null: they are kept for ever. An org's own days count from `now`. */
export interface Before {
  readonly now: DateTime.Utc
  /** Of messages that ended well, and of events. */
  readonly ended: DateTime.Utc | null
  /** Of dead letters and of messages SENT, and of removed destinations. */
  readonly dead: DateTime.Utc | null
  /** The most days that an org's own setting may name; null: any number. */
  readonly daysMax: number | null
}

export interface EndedMessage {
  readonly id: MessageId
  /** The last version of its stream, as the list knows it. */
  readonly version: StreamVersion
}

/**
 * Deletes what is over and old.
 *
 * - `find` looks at the next `limit` messages and answers those whose days are over: by the time of the ending, or of a message SENT by the
 *   time of its last fact. A dead letter that holds the place of its ordering key is not among them, nor a message of which a follower of
 *   the log, a rebuild included, has yet to read a fact. A follower that has stood still for a day is no longer waited for.
 * - `forget` deletes messages with all that is kept of them; one that has gone on since stays. Null, and nothing happens, while another
 *   process does the same.
 * - `forgetEvents` deletes events none of whose messages is left, of the next `limit`.
 * - `forgetDestinations` deletes at most `limit` removed destinations whose lanes hold nothing, each with its journals, whose prefixes
 *   `journals` names by channel. Messages may still name them.
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
