import { Context, type DateTime } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"
import type { BatchId } from "./Queue.ts"

/**
 * `unreadable`: a stored fact is none that this release can read, or its sealed body does not open. `unlawful`: the facts are no history that the law allows.
 * `failed`: Posthaste failed while it worked on the message.
 */
export const setAsideReasons = ["unreadable", "unlawful", "failed"] as const
export type SetAsideReason = (typeof setAsideReasons)[number]

/** A message that can't be processed; what is not known of it is null. */
export interface Unprocessable {
  readonly messageId: MessageId
  readonly orgId: OrgId | null
  readonly lane: DestinationId | null
  readonly reason: SetAsideReason
  /** What went wrong, in words for whoever repairs it. */
  readonly detail: string
  /** The stream's version when it was looked at: later facts are somebody's who could process it. */
  readonly version: number
}

/** How far the facts of a message that is set aside were looked at; null where nobody has kept it. */
export interface LookedAt {
  readonly messageId: MessageId
  readonly version: number | null
}

export interface SetAsideMessage extends Omit<Unprocessable, "version"> {
  readonly since: DateTime.Utc
  /** How often it was set aside in a row. */
  readonly tries: number
  /** When it is tried again by itself. */
  readonly againAt: DateTime.Utc
}

/** A stream that somebody can't process: whoever works off the queue, or readers of the log (see StreamsAside.ts). */
export interface SetAsideStream extends Omit<SetAsideMessage, "messageId"> {
  readonly stream: string
  /** Null for a stream that is no message's. */
  readonly messageId: MessageId | null
  /** Who sets it aside: `queue`, or the name of a reader. */
  readonly parts: ReadonlyArray<string>
}

/** How long a message is left alone after it was set aside for the first, second, … time; the last one for all that follow. */
export const PAUSES_MS: ReadonlyArray<number> = [1, 4, 15, 60, 240].map((minutes) => minutes * 60_000)

/**
 * Messages that can't be processed. They are in no batch and in no lane, so they hold up nothing but the messages behind them in
 * their line, and nothing of them is lost: their facts say where they belong (see mend in DerivedRows.ts, which puts them there).
 *
 * - `put` takes messages out of a batch and sets them aside, in one transaction; those that are not in it, or all without the
 *   batch, stay as they are. For `batch` null they are set aside wherever they are. One that waits for its turn in its line is not
 *   set aside: that is where it belongs.
 * - A fact that moves a message in the queue ends that it is set aside, in the same transaction: whoever decided on it could read it.
 * - `due` answers messages whose time to be tried again has come, each to one caller for a minute. Mending one ends that it is
 *   set aside; a message that is set aside again within a day has been tried once more.
 * - `tryAgain` brings that time to now, of these messages or of everything that is listed, and answers how many streams there are.
 * - `lookedAt` answers the next messages that are set aside; `after` is its `next` of the call before, and null begins. `end` strikes those
 *   off that nobody has looked at again since. A fact that moves nothing in the queue, as the success of a message without an ordering key,
 *   ends nothing by itself, so somebody has to look (deliver/endAsides.ts).
 */
export class SetAside extends Context.Service<
  SetAside,
  {
    readonly put: (batch: BatchId | null, messages: ReadonlyArray<Unprocessable>) => FromStore<void>
    readonly due: (limit: number) => FromStore<ReadonlyArray<MessageId>>
    /** Those of these messages that are set aside. */
    readonly find: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlyMap<MessageId, SetAsideMessage>>
    /** Of all orgs, by stream; with those that only readers of the log set aside. */
    readonly list: (page: PageRequest) => FromStore<Page<SetAsideStream>>
    readonly tryAgain: (ids: ReadonlyArray<MessageId> | null) => FromStore<number>
    readonly lookedAt: (
      after: MessageId | null,
      limit: number
    ) => FromStore<{ readonly messages: ReadonlyArray<LookedAt>; readonly next: MessageId | null }>
    readonly end: (messages: ReadonlyArray<LookedAt>) => FromStore<void>
  }
>()("posthaste/application/ports/SetAside") {}
