import { Context, type DateTime } from "effect"
import type { AuditEntry, Operation } from "../../domain/audit/entry.ts"
import type { ChannelName, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { Step } from "./Projections.ts"

/** An entry with the fact it comes from. */
export interface AuditRow extends AuditEntry {
  readonly stream: string
  readonly version: StreamVersion
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface AuditItem extends Omit<AuditRow, "stream" | "version"> {
  /** The same after a rebuild. */
  readonly id: string
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
 * The projection `audit`: each operation with its subject and actor, one entry for each fact that tells one. It is
 * derived, a little behind, rebuildable; readers see the live generation. Forgotten messages lose their entries.
 *
 * `project` writes rows and position together; an existing row is left as it is.
 */
export class AuditTrail extends Context.Service<
  AuditTrail,
  {
    /** Newest first. */
    readonly list: (orgId: OrgId, filter: AuditFilter, page: PageRequest) => FromStore<Page<AuditItem>>
    /** Writes nothing and answers false when the run has left the step's `from`. */
    readonly project: (step: Step, rows: ReadonlyArray<AuditRow>) => FromStore<boolean>
    /** Deletes up to `limit` rows of earlier generations; answers their number. */
    readonly clear: (limit: number) => FromStore<number>
  }
>()("posthaste/application/ports/AuditTrail") {}
