import { Context, type DateTime } from "effect"
import { type AuditEntry, entryOf, type Operation } from "../../domain/audit/entry.ts"
import { type Activity, activityOf } from "../../domain/consent/activity.ts"
import type { ChannelName, MessageId, OrgId } from "../../domain/ids.ts"
import type { LoggedFact } from "./EventStore.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"
import type { JournalName } from "./Journals.ts"

export interface AuditItem extends AuditEntry {
  readonly id: string
  readonly orgId: OrgId
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface AuditFilter {
  readonly operation?: Operation
  readonly actor?: string
  /** A stream, such as `endpoint-<id>`. */
  readonly subject?: string
  /** Inclusive. */
  readonly from?: DateTime.Utc
  /** Exclusive. */
  readonly to?: DateTime.Utc
}

export interface TimelineItem extends Pick<AuditItem, "id" | "at" | "actor" | "details"> {
  readonly dossierId: string
  readonly activity: Activity
  readonly channel: ChannelName
  readonly messageId: MessageId | null
}

/**
 * The facts of an org as people read them, newest first, from the facts themselves, so never behind.
 *
 * - `list` has the facts of journals that tell an operation, and those of messages that have an actor. Routine facts
 *   of messages (CREATED, SENT, UPDATED) and endings without an actor are listed only where the message is the filter's
 *   subject.
 * - `timeline` has all facts of a dossier's messages and of `consents`, and its refused messages.
 */
export class AuditTrail extends Context.Service<
  AuditTrail,
  {
    readonly list: (orgId: OrgId, filter: AuditFilter, page: PageRequest) => FromStore<Page<AuditItem>>
    readonly timeline: (
      orgId: OrgId,
      dossierId: string,
      consents: ReadonlyArray<JournalName>,
      page: PageRequest
    ) => FromStore<Page<TimelineItem>>
  }
>()("posthaste/application/ports/AuditTrail") {}

const placeIn = ({ stream, version, at, actor }: LoggedFact) => ({ id: `${stream}.${version}`, at, actor })

export const itemOf = (orgId: OrgId, fact: LoggedFact): AuditItem => ({ orgId, ...placeIn(fact), ...entryOf(fact)! })

/** A fact that tells an activity, as `timeline` has it. `channel` is the message's. */
export const activityIn = (dossierId: string, fact: LoggedFact, channel: ChannelName | null): TimelineItem => {
  const { operation, details } = entryOf(fact)!
  return {
    ...{ ...placeIn(fact), dossierId, details, messageId: fact.messageId },
    activity: activityOf(operation)!,
    channel: channel ?? (details["channel"] as ChannelName)
  }
}
