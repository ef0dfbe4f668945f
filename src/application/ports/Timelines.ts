import { Context, type DateTime, type Effect } from "effect"
import type { Details } from "../../domain/audit/entry.ts"
import type { Activity } from "../../domain/consent/activity.ts"
import type { ConsentOf } from "../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId } from "../../domain/ids.ts"
import type { Page, StoreUnavailable } from "../errors.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { Step } from "./Projections.ts"

/** One thing that happened to a dossier, with the fact it comes from. */
export interface TimelineRow {
  readonly stream: string
  readonly version: StreamVersion
  readonly orgId: OrgId
  readonly dossierId: string
  readonly activity: Activity
  readonly at: DateTime.Utc
  readonly channel: ChannelName
  /** Null for what is about no message, or about one that was turned away. */
  readonly messageId: MessageId | null
  readonly actor: string | null
  readonly details: Details
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
 * The projection `activity`: the timeline of each dossier, and the withdrawals that are not applied yet. It is derived, a
 * little behind, rebuildable; everybody reads the live generation. What is about a forgotten message goes with it.
 *
 * `project` writes rows and position together; a row that is there already is left as it is, and so is the state of a
 * withdrawal that is known to a later version. So whoever sees a withdrawal here also sees every message that was
 * accepted before it.
 */
export class Timelines extends Context.Service<
  Timelines,
  {
    /** Newest first. */
    readonly list: (
      orgId: OrgId,
      dossierId: string,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<TimelineItem>, StoreUnavailable>
    /** Messages the dossier ever had on that channel, by id, from behind `after` on. */
    readonly messages: (
      of: ConsentOf,
      after: MessageId | null,
      limit: number
    ) => Effect.Effect<ReadonlyArray<MessageId>, StoreUnavailable>
    readonly openWithdrawals: (limit: number) => Effect.Effect<ReadonlyArray<ConsentOf>, StoreUnavailable>
    /** Writes nothing and answers false when the run no longer stands where the step begins. */
    readonly project: (
      step: Step,
      rows: ReadonlyArray<TimelineRow>,
      withdrawals: ReadonlyArray<WithdrawalState>
    ) => Effect.Effect<boolean, StoreUnavailable>
    /** Deletes up to `limit` rows of generations that were left behind; how many went. */
    readonly clear: (limit: number) => Effect.Effect<number, StoreUnavailable>
  }
>()("posthaste/application/ports/Timelines") {}
