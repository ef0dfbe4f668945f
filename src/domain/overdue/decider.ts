/**
 * `initial · decide · evolve · replay` of the overdue backlog one alert target watches. It begins when the oldest due
 * message has waited longer than the limit, and it ends only when nothing has waited half as long: a backlog that
 * moves around the limit is one overdue backlog, not many.
 */
import { DateTime } from "effect"
import { initialTransition, type SnapshotFrom, transition } from "xstate"
import type { DestinationId, MessageId, OrgId } from "../ids.ts"
import type { OverdueFact } from "./facts.ts"
import { overdueMachine } from "./machine.ts"

export type Overdue = SnapshotFrom<typeof overdueMachine>

/** A message that is due and has not been handed out. */
export interface OldestDue {
  readonly messageId: MessageId
  readonly destination: DestinationId
  readonly dueAt: DateTime.Utc
}

/** What was seen in the queue. */
export interface Look {
  readonly now: DateTime.Utc
  /** Null when nothing is due. */
  readonly oldest: OldestDue | null
  /** Null when the target does not watch any more: what had begun then ends. */
  readonly limitSeconds: number | null
}

/** What is left of the limit when an overdue backlog is over. */
const CALM_SHARE = 0.5

export const initial: Overdue = initialTransition(overdueMachine)[0]

/** A fact the law forbids is a bug in whoever appended it: it stops us, it is never repaired silently. */
export const evolve = (overdue: Overdue, fact: OverdueFact): Overdue => {
  if (!overdue.can(fact)) throw new Error(`${fact.type} cannot follow ${overdue.value}`)
  return transition(overdueMachine, overdue, fact)[0]
}

export const replay = (history: ReadonlyArray<OverdueFact>): Overdue => history.reduce(evolve, initial)

/** Nothing, while what is seen is what is known. */
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
