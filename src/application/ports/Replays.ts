import { Context, type Duration } from "effect"
import type { EventId, MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import type { DeadLetterFilter, MissedEvents, ReplayRequested, WaitingFilter } from "../../domain/replay/facts.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

/** A dead or waiting message at the time of the request; with a higher epoch it is another one. */
export interface DeadItem {
  readonly messageId: MessageId
  readonly epoch: number
}

/** An event that had not become a message for the destination at the time of the request. */
export interface MissedItem {
  readonly eventId: EventId
}

export type ReplayItem = DeadItem | MissedItem

/** The request and the number of its items. The progress is in the replay's journal. */
export interface ReplayJob extends Omit<ReplayRequested, "type"> {
  readonly id: ReplayId
  /** The search goes on: `matched` counts the items so far. The journal begins when it is over. */
  readonly searching: boolean
}

export interface Opening extends Omit<ReplayJob, "matched" | "searching"> {
  readonly set: ReplaySet
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null
}

/** The dead letters themselves, or the filter by which the store finds the items. */
export type ReplaySet =
  | { readonly items: ReadonlyArray<DeadItem> }
  | { readonly filter: DeadLetterFilter }
  | { readonly waiting: WaitingFilter }
  | { readonly missed: MissedEvents & { readonly eventTypes: ReadonlyArray<string> } }

export type OpenResult =
  | { readonly type: "Opened"; readonly job: ReplayJob }
  /** The key was used for this replay. Nothing was written. */
  | { readonly type: "DuplicateKey"; readonly job: ReplayJob; readonly requestHash: string }

/**
 * The items of each replay, and the replays that have work left.
 *
 * - `open` stores the request, its key, and listed dead letters. Then the replay happens, whatever crashes. It is as
 *   fast for many items as for few.
 * - `search` adds the next `limit` items of a filter, each once, as they were at the request. Any process may search;
 *   `endSearch` ends it.
 * - An event is missed when its destination never had a message of it, not even a forgotten one, and its body is
 *   there.
 * - Items are numbered from 1 in the order their messages were accepted, or their events were published.
 * - `take` hands a replay to one caller until `lease` has passed or it was put `back` and the pause is over. Replays
 *   take turns. The version of a message's stream prevents a second replay of it.
 * - `close` ends it and deletes its items.
 */
export class Replays extends Context.Service<
  Replays,
  {
    readonly open: (opening: Opening) => FromStore<OpenResult>
    readonly search: (job: ReplayJob, limit: number) => FromStore<ReplayJob>
    readonly endSearch: (id: ReplayId) => FromStore<void>
    readonly get: (orgId: OrgId, id: ReplayId) => FromStore<ReplayJob | null>
    readonly requestedUnder: (orgId: OrgId, key: string) => FromStore<Pick<ReplayJob, "id"> | null>
    readonly list: (orgId: OrgId, page: PageRequest) => FromStore<Page<ReplayJob>>
    readonly items: (id: ReplayId, after: number, limit: number) => FromStore<ReadonlyArray<ReplayItem>>
    readonly take: (lease: Duration.Duration) => FromStore<ReplayJob | null>
    readonly back: (id: ReplayId, pause: Duration.Duration) => FromStore<void>
    readonly close: (id: ReplayId) => FromStore<void>
  }
>()("posthaste/application/ports/Replays") {}
