import { Context, type Effect } from "effect"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import type { OldestDue } from "../../domain/overdue/decider.ts"
import type { StoreUnavailable } from "../errors.ts"

export interface AlertSubject {
  readonly id: DestinationId
  readonly orgId: OrgId
  readonly channel: ChannelName
  /** Null where a channel has none. */
  readonly url: string | null
  readonly removed: boolean
}

/**
 * What can be alerted about. A destination that is, or ever was, an alert target's is unknown here, whoever asks
 * and for whichever org: so there is never an alert about an alert.
 */
export class AlertSubjects extends Context.Service<
  AlertSubjects,
  {
    /** Those of these destinations, removed ones included. */
    readonly among: (
      destinations: ReadonlyArray<DestinationId>
    ) => Effect.Effect<ReadonlyMap<DestinationId, AlertSubject>, StoreUnavailable>
    /** Of each of these orgs the message that is due longest and has not been handed out. Orgs without one are absent. */
    readonly oldestDue: (orgs: ReadonlyArray<OrgId>) => Effect.Effect<ReadonlyMap<OrgId, OldestDue>, StoreUnavailable>
  }
>()("posthaste/application/ports/AlertSubjects") {}
