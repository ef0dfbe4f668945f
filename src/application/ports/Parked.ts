import { Context, type DateTime } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

/**
 * `unreadable`: this release can't read a stored fact. `failed`: Posthaste fails while it works on the stream. `lost`:
 * the message is open and in no place of the queue.
 */
export const parkedReasons = ["unreadable", "failed", "lost"] as const
export type ParkedReason = (typeof parkedReasons)[number]

export interface ParkedStream {
  readonly stream: string
  readonly reason: ParkedReason
  readonly at: DateTime.Utc
}

/**
 * Streams that Posthaste can't process. A parked message is in no batch and in no lane; those behind it in its line
 * wait. Readers of the log leave its facts out; rebuilt rows have them again, alerts and facts for a broker do not.
 * `park` answers the streams that were not parked before, so that the log names each once.
 */
export class Parked extends Context.Service<
  Parked,
  {
    readonly park: (streams: ReadonlyMap<string, ParkedReason>) => FromStore<ReadonlyArray<string>>
    readonly unpark: (streams: ReadonlyArray<string>) => FromStore<void>
    readonly find: (orgId: OrgId, id: MessageId) => FromStore<ParkedStream | null>
    /**
     * Open messages, as the list knows them, that are in no lane, line or batch and are not parked; all or those of
     * `among`. The list lags, so a message that has just moved may be one.
     */
    readonly lost: (among: ReadonlyArray<MessageId> | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly list: (page: PageRequest) => FromStore<Page<ParkedStream>>
  }
>()("posthaste/application/ports/Parked") {}
