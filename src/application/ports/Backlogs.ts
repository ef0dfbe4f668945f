import { Context, type DateTime } from "effect"
import type { CircuitStatus } from "../../domain/circuit/machine.ts"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

export interface Backlog {
  /** At most `WAITING_MAX`. */
  readonly waiting: number
  readonly oldestDueAt: DateTime.Utc | null
  readonly inFlight: number
}

/** The bound of counting: a page for people must not read a million rows. */
export const WAITING_MAX = 10_000

export const sorts = ["id", "waiting", "oldest"] as const
export type Sort = (typeof sorts)[number]

export interface BacklogFilter {
  readonly channel?: ChannelName
  readonly paused?: boolean
  readonly circuit?: CircuitStatus
  readonly waiting?: boolean
}

export interface Turn {
  /** The message at the head of its line, when that is another one. */
  readonly head: MessageId | null
  /** Messages of its lane that are due before it; at most `WAITING_MAX`. */
  readonly ahead: number
}

/**
 * The backlog of each destination of an org: always current, and read beside the claims, never in their way. Removed
 * destinations have none.
 */
export class Backlogs extends Context.Service<
  Backlogs,
  {
    readonly of: (destination: DestinationId) => FromStore<Backlog>
    /**
     * `waiting`: the longest backlog first. `oldest`: the earliest due first, those without a backlog last. A backlog
     * that changes between two pages may be left out or come twice. Null: of all orgs.
     */
    readonly list: (
      orgId: OrgId | null,
      filter: BacklogFilter,
      sort: Sort,
      page: PageRequest
    ) => FromStore<Page<Backlog & { readonly destination: DestinationId }>>
    readonly turn: (destination: DestinationId, message: MessageId, dueAt: DateTime.Utc) => FromStore<Turn>
  }
>()("posthaste/application/ports/Backlogs") {}
