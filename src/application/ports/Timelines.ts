import { Context } from "effect"
import type { Activity } from "../../domain/consent/activity.ts"
import type { ConsentOf } from "../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"
import type { AuditRow } from "./AuditTrail.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { Step } from "./Projections.ts"

/** An activity of a dossier, with the fact it comes from. */
export interface TimelineRow extends Pick<AuditRow, "stream" | "version" | "orgId" | "at" | "actor" | "details"> {
  readonly dossierId: string
  readonly activity: Activity
  readonly channel: ChannelName
  /** Null for an activity without a message, or about one that was refused. */
  readonly messageId: MessageId | null
}

export interface TimelineItem extends Omit<TimelineRow, "stream" | "version"> {
  /** The same after a rebuild. */
  readonly id: string
}

/** Whether messages may still wait although the consent for them was withdrawn, as of a version of its journal. */
export interface WithdrawalState {
  readonly of: ConsentOf
  readonly version: StreamVersion
  readonly open: boolean
}

/**
 * The projection `activity`: the timeline of each dossier, and the withdrawals that are not applied yet. It is derived,
 * a little behind, rebuildable; readers see the live generation. Forgotten messages lose their rows.
 *
 * `project` writes rows and position together. It leaves an existing row as it is, and the state of a withdrawal that
 * is known at a later version. A reader that sees a withdrawal here therefore also sees every message that was accepted
 * before it.
 */
export class Timelines extends Context.Service<
  Timelines,
  {
    /** Newest first. */
    readonly list: (orgId: OrgId, dossierId: string, page: PageRequest) => FromStore<Page<TimelineItem>>
    /** The dossier's messages on that channel, by id, after `after`. */
    readonly messages: (of: ConsentOf, after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly openWithdrawals: (limit: number) => FromStore<ReadonlyArray<ConsentOf>>
    /** Writes nothing and answers false when the run has left the step's `from`. */
    readonly project: (
      step: Step,
      rows: ReadonlyArray<TimelineRow>,
      withdrawals: ReadonlyArray<WithdrawalState>
    ) => FromStore<boolean>
    /** Deletes up to `limit` rows of earlier generations; answers their number. */
    readonly clear: (limit: number) => FromStore<number>
  }
>()("posthaste/application/ports/Timelines") {}
