/**
 * `initial · decide · evolve · replay` of the lateness one alert target watches. It begins when the oldest due
 * message has waited longer than the limit, and it ends only when nothing has waited half as long: a backlog that
 * moves around the limit is one lateness, not many.
 */
import { DateTime } from "effect"
import { initialTransition, type SnapshotFrom, transition } from "xstate"
import type { DestinationId, MessageId, OrgId } from "../ids.ts"
import type { LatenessFact } from "./facts.ts"
import { latenessMachine } from "./machine.ts"

export type Lateness = SnapshotFrom<typeof latenessMachine>

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

/** What is left of the limit when a lateness is over. */
const CALM_SHARE = 0.5

export const initial: Lateness = initialTransition(latenessMachine)[0]

/** A fact the law forbids is a bug in whoever appended it: it stops us, it is never repaired silently. */
export const evolve = (lateness: Lateness, fact: LatenessFact): Lateness => {
  if (!lateness.can(fact)) throw new Error(`${fact.type} cannot follow ${lateness.value}`)
  return transition(latenessMachine, lateness, fact)[0]
}

export const replay = (history: ReadonlyArray<LatenessFact>): Lateness => history.reduce(evolve, initial)

/** Nothing, while what is seen is what is known. */
export const decide = (
  lateness: Lateness,
  orgId: OrgId,
  { now, oldest, limitSeconds }: Look
): ReadonlyArray<LatenessFact> => {
  const waitedMs = oldest === null ? 0 : DateTime.toEpochMillis(now) - DateTime.toEpochMillis(oldest.dueAt)
  if (lateness.value === "LATE") {
    const isOver = limitSeconds === null || waitedMs <= limitSeconds * 1000 * CALM_SHARE
    return isOver ? [{ type: "LatenessEnded", orgId }] : []
  }
  return oldest !== null && limitSeconds !== null && waitedMs > limitSeconds * 1000
    ? [{ type: "LatenessBegan", orgId, limitSeconds, ...oldest }]
    : []
}
