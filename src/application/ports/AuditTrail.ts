import { Context, type DateTime, type Effect } from "effect"
import type { AuditEntry, Operation } from "../../domain/audit/entry.ts"
import type { ChannelName, MessageId, OrgId } from "../../domain/ids.ts"
import type { Page, StoreUnavailable } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { Step } from "./Projections.ts"

/** An entry with the fact it comes from. */
export interface AuditRow extends AuditEntry {
  readonly stream: string
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface AuditItem extends AuditEntry {
  /** The same after a rebuild. */
  readonly id: string
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface AuditFilter {
  readonly operation?: Operation
  readonly actor?: string
  readonly correlationId?: string
  readonly dossierId?: string
  readonly messageId?: MessageId
  readonly channel?: ChannelName
  /** Inclusive. */
  readonly from?: DateTime.Utc
  /** Exclusive. */
  readonly to?: DateTime.Utc
}

/**
 * The projection `audit`: what was done, to what and by whom, an entry for each fact that says so. It is derived, a little
 * behind, rebuildable; everybody reads the live generation. Entries of a message that is forgotten go with it.
 *
 * `project` writes rows and position together; a row that is there already is left as it is.
 */
export class AuditTrail extends Context.Service<
  AuditTrail,
  {
    /** Newest first. */
    readonly list: (
      orgId: OrgId,
      filter: AuditFilter,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<AuditItem>, StoreUnavailable>
    /** Writes nothing and answers false when the run no longer stands where the step begins. */
    readonly project: (step: Step, rows: ReadonlyArray<AuditRow>) => Effect.Effect<boolean, StoreUnavailable>
    /** Deletes up to `limit` rows of generations that were left behind; how many went. */
    readonly clear: (limit: number) => Effect.Effect<number, StoreUnavailable>
  }
>()("posthaste/application/ports/AuditTrail") {}
