/** The dead letters of an org that match a filter, as the views know them. */
import { DateTime } from "effect"
import { isDead, type MessageView } from "../../../src/domain/message/view.ts"
import type { DeadLetterFilter } from "../../../src/domain/replay/facts.ts"
import { liveViews } from "../log/runs.ts"
import type { Tables } from "../Memory.ts"

const matches = (
  view: MessageView,
  { to, channel, errorCode, statuses, dismissed = false, after, before }: DeadLetterFilter
): boolean =>
  (view.dismissed ?? false) === dismissed &&
  (to === undefined || view.to === to) &&
  (channel === undefined || view.channel === channel) &&
  (errorCode === undefined || view.lastError?.code === errorCode) &&
  (statuses === undefined || statuses.some((status) => status === view.status)) &&
  (after === undefined || DateTime.isGreaterThan(view.endedAt!, after)) &&
  (before === undefined || DateTime.isLessThan(view.endedAt!, before))

export const deadLettersIn = (
  tables: Tables,
  orgId: string | null,
  filter: DeadLetterFilter
): ReadonlyArray<MessageView> =>
  [...liveViews(tables).values()].filter(
    (view) => (orgId === null || view.orgId === orgId) && isDead(view.status) && matches(view, filter)
  )
