import { Context, type DateTime, type Effect } from "effect"
import type { ChannelName, OrgId } from "../../domain/ids.ts"
import type { MessageStatus } from "../../domain/message/machine.ts"
import type { MessageView } from "../../domain/message/view.ts"
import type { DeadLetterFilter } from "../../domain/replay/facts.ts"
import type { Page } from "./Endpoints.ts"
import type { Position, StoreUnavailable } from "./EventStore.ts"

export interface MessageFilter {
  readonly status?: MessageStatus
  readonly channel?: ChannelName
  readonly to?: string
  readonly eventType?: string
  readonly dossierId?: string
  readonly correlationId?: string
  readonly createdAfter?: DateTime.Utc
  readonly createdBefore?: DateTime.Utc
}

export interface Stats {
  readonly byStatus: Readonly<Record<MessageStatus, number>>
  /** When the message that has waited longest past its due time was due; null when nothing is late. */
  readonly oldestDueAt: DateTime.Utc | null
}

export interface DeadCount {
  readonly matched: number
  /** Of these, so many may have been delivered: a provider's receipt says so. */
  readonly contradicted: number
}

/**
 * The list projection: what was folded from each stream, for searching and counting. Derived, always a
 * little behind, rebuildable. `project` is version-gated: an older view never replaces a newer one, and
 * the position moves forward in the same transaction as the rows it stands for.
 */
export class MessageViews extends Context.Service<
  MessageViews,
  {
    /** Newest first. */
    readonly list: (
      orgId: OrgId,
      filter: MessageFilter,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<MessageView>, StoreUnavailable>
    /** Ended in FAILED or DEAD_LETTER and not replayed since; the last to die first. */
    readonly deadLetters: (
      orgId: OrgId,
      filter: DeadLetterFilter,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<MessageView>, StoreUnavailable>
    readonly countDeadLetters: (orgId: OrgId, filter: DeadLetterFilter) => Effect.Effect<DeadCount, StoreUnavailable>
    readonly stats: (orgId: OrgId) => Effect.Effect<Stats, StoreUnavailable>
    readonly position: Effect.Effect<Position | null, StoreUnavailable>
    /** Writes nothing and answers false when the stored position is no longer `from`: someone else projected. */
    readonly project: (
      from: Position | null,
      to: Position,
      views: ReadonlyArray<MessageView>
    ) => Effect.Effect<boolean, StoreUnavailable>
  }
>()("posthaste/application/ports/MessageViews") {}
