import { Context, type DateTime } from "effect"
import type { CircuitStatus } from "../../domain/circuit/machine.ts"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"

/** What waits for one destination. */
export interface Backlog {
  /** No more than `WAITING_MAX`: then there are as many or more. */
  readonly waiting: number
  /** When the first of them is due or was due; null when none waits. */
  readonly oldestDueAt: DateTime.Utc | null
  /** Handed to workers and not handed back. */
  readonly inFlight: number
}

/** So far a backlog is counted: what is read for people must not read a million rows. */
export const WAITING_MAX = 10_000

export const sorts = ["id", "waiting", "oldest"] as const
export type Sort = (typeof sorts)[number]

export interface BacklogFilter {
  readonly channel?: ChannelName
  readonly paused?: boolean
  readonly circuit?: CircuitStatus
  /** Those for which something waits, or nothing. */
  readonly waiting?: boolean
}

/** What stands before a waiting message. */
export interface Turn {
  /** The message at the head of its line, when that is another one. */
  readonly head: MessageId | null
  /** How many messages of its lane are due before it; no more than `WAITING_MAX`. */
  readonly ahead: number
}

/**
 * The queue as people ask about it: how much waits for each destination of an org. It is always current, changes nothing and
 * is read beside the claims, never in their way. Removed destinations have no backlog.
 */
export class Backlogs extends Context.Service<
  Backlogs,
  {
    readonly of: (destination: DestinationId) => FromStore<Backlog>
    /**
     * `waiting`: the longest backlog first. `oldest`: the earliest due first, those without a backlog last. `id`: by id. A
     * page follows the one before by its last row, so a backlog that changes between two pages may be left out or come
     * twice. Null: the destinations of all orgs.
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
