import { Context, type DateTime, type Effect } from "effect"
import type { AlertEvent, Severity } from "../../domain/alert/alert.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import type { Page, StoreUnavailable } from "../errors.ts"

export const alertTargetTypes = ["webhook", "pagerduty"] as const
export type AlertTargetType = (typeof alertTargetTypes)[number]

/** What kind of destination is made for each. */
export const channelOfType = { webhook: "webhook", pagerduty: "http" } as const satisfies Record<
  AlertTargetType,
  ChannelName
>

export interface AlertTargetSettings {
  readonly events: ReadonlyArray<AlertEvent>
  /** How long a due message may wait before that is told; null tells nothing about it. */
  readonly oldestDueSeconds: number | null
  /** Of all that is told, in place of each alert's own. */
  readonly severity: Severity | null
  readonly description: string | null
}

/** Who is told about an org's troubles. */
export interface AlertTarget extends AlertTargetSettings {
  /** That of the destination made for it: alerts are its messages. */
  readonly id: DestinationId
  readonly orgId: OrgId
  readonly type: AlertTargetType
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

/**
 * Alert targets. Each is the alerting side of a webhook endpoint or HTTP target that was made for it, with the
 * same id, where address and secrets are kept. When that is removed the target is unknown to every method; that
 * alerts were sent there is remembered for ever (see AlertSubjects).
 */
export class AlertTargets extends Context.Service<
  AlertTargets,
  {
    /** `id` names a destination of the org that exists and is no alert target yet. */
    readonly add: (
      orgId: OrgId,
      id: DestinationId,
      type: AlertTargetType,
      settings: AlertTargetSettings
    ) => Effect.Effect<AlertTarget, StoreUnavailable>
    readonly get: (orgId: OrgId, id: DestinationId) => Effect.Effect<AlertTarget | null, StoreUnavailable>
    readonly list: (
      orgId: OrgId,
      page: { readonly cursor: string | null; readonly limit: number }
    ) => Effect.Effect<Page<AlertTarget>, StoreUnavailable>
    /** Null when there is no such target in the org. The journal of its destination tells it, as a change of that. */
    readonly update: (
      orgId: OrgId,
      id: DestinationId,
      change: Partial<AlertTargetSettings>
    ) => Effect.Effect<AlertTarget | null, StoreUnavailable>
    /** Of all orgs. */
    readonly all: Effect.Effect<ReadonlyArray<AlertTarget>, StoreUnavailable>
  }
>()("posthaste/application/ports/AlertTargets") {}
