/**
 * `initial · decide · evolve · replay` of the overdue backlog that one alert target watches. It begins when the oldest
 * due message has waited longer than the limit, and it ends only when no message has waited half as long: a backlog
 * that moves around the limit is one overdue backlog, not many.
 */
import { DateTime } from "effect"
import { initialTransition, type SnapshotFrom, transition } from "xstate"
import { foldOf } from "../fold.ts"
import type { DestinationId, MessageId, OrgId } from "../ids.ts"
import type { OverdueFact } from "./facts.ts"
import { overdueMachine } from "./machine.ts"

export type Overdue = SnapshotFrom<typeof overdueMachine>

/** A message that is due and that no worker has claimed. */
export interface OldestDue {
  readonly messageId: MessageId
  readonly destination: DestinationId
  readonly dueAt: DateTime.Utc
}

/** One look at the queue. */
export interface Look {
  readonly now: DateTime.Utc
  /** Null when nothing is due. */
  readonly oldest: OldestDue | null
  /** Null when the target does not watch its backlog any more: an overdue backlog then ends. */
  readonly limitSeconds: number | null
}

/** The share of the limit below which an overdue backlog is over. */
const CALM_SHARE = 0.5

export const initial: Overdue = initialTransition(overdueMachine)[0]

export const step = (overdue: Overdue, fact: OverdueFact): Overdue | null =>
  overdue.can(fact) ? transition(overdueMachine, overdue, fact)[0] : null

export const { evolve, replay } = foldOf(initial, step, ({ value }) => value)

/** The state after the last fact of the journal, whatever came before. */
export const after = (last: OverdueFact | null): Overdue =>
  last === null || last.type === "OverdueEnded" ? initial : evolve(initial, last)

/** No facts while the look shows what is already known. */
export const decide = (
  overdue: Overdue,
  orgId: OrgId,
  { now, oldest, limitSeconds }: Look
): ReadonlyArray<OverdueFact> => {
  const waitedMs = oldest === null ? 0 : DateTime.toEpochMillis(now) - DateTime.toEpochMillis(oldest.dueAt)
  if (overdue.value === "LATE") {
    const isOver = limitSeconds === null || waitedMs <= limitSeconds * 1000 * CALM_SHARE
    return isOver ? [{ type: "OverdueEnded", orgId }] : []
  }
  return oldest !== null && limitSeconds !== null && waitedMs > limitSeconds * 1000
    ? [{ type: "OverdueBegan", orgId, limitSeconds, ...oldest }]
    : []
}
