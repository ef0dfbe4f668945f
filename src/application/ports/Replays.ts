import { Context, type Duration } from "effect"
import type { EventId, MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import type { DeadLetterFilter, MissedEvents, ReplayRequested } from "../../domain/replay/facts.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"

/** A dead letter at the time of the request: if its epoch is higher by now, it is not replayed again. */
export interface DeadItem {
  readonly messageId: MessageId
  readonly epoch: number
}

/** An event that had not become a message for the destination at the time of the request. */
export interface MissedItem {
  readonly eventId: EventId
}

/** All items of one replay are of one kind. */
export type ReplayItem = DeadItem | MissedItem

/** The request and the number of its items. The progress is in the replay's journal. */
export interface ReplayJob extends Omit<ReplayRequested, "type"> {
  readonly id: ReplayId
}

export interface Opening extends Omit<ReplayJob, "matched"> {
  readonly set: ReplaySet
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null
}

/** The dead letters themselves, or what the store finds them or the missed events by. */
export type ReplaySet =
  | { readonly items: ReadonlyArray<DeadItem> }
  | { readonly filter: DeadLetterFilter }
  | { readonly missed: MissedEvents & { readonly eventTypes: ReadonlyArray<string> } }

export type OpenResult =
  | { readonly type: "Opened"; readonly job: ReplayJob }
  /** The key was used before, for this replay. Nothing was written. */
  | { readonly type: "DuplicateKey"; readonly job: ReplayJob; readonly requestHash: string }

/**
 * The dead letters or missed events of each replay, and the replays that have work left.
 *
 * - `open` fixes the items: request, key and every item are written together or not at all. Once it answers, the
 *   replay happens, whatever crashes; the first worker that takes it begins its journal.
 * - An event is missed when its destination never had a message of it, not even one that is forgotten, and its body is
 *   still there.
 * - Items are numbered from 1 in the order their messages were accepted, or their events were published.
 * - `take` hands a replay to one caller. No other caller gets it until `lease` has passed or it was put `back`, and
 *   then not before the pause is over. Replays take turns. The lease saves double work; the version check of a
 *   message's stream is what prevents a second replay of the message.
 * - `close` ends it: it is not taken again, and its items are deleted.
 */
export class Replays extends Context.Service<
  Replays,
  {
    readonly open: (opening: Opening) => FromStore<OpenResult>
    readonly get: (orgId: OrgId, id: ReplayId) => FromStore<ReplayJob | null>
    /** Newest first. */
    readonly list: (orgId: OrgId, page: PageRequest) => FromStore<Page<ReplayJob>>
    /** The items numbered `after + 1` and on. */
    readonly items: (id: ReplayId, after: number, limit: number) => FromStore<ReadonlyArray<ReplayItem>>
    /** Null when no replay has work now. */
    readonly take: (lease: Duration.Duration) => FromStore<ReplayJob | null>
    readonly back: (id: ReplayId, pause: Duration.Duration) => FromStore<void>
    readonly close: (id: ReplayId) => FromStore<void>
  }
>()("posthaste/application/ports/Replays") {}
