/**
 * `initial · decide · evolve · replay` of a lasting condition that one alert target watches, and when each condition
 * begins and ends. A backlog ends at half of its limit, so that one around the limit is one condition; a broker that
 * restarts is no condition.
 */
import { DateTime } from "effect"
import { initialTransition, type SnapshotFrom, setup, transition } from "xstate"
import { foldOf } from "../fold.ts"
import type { DestinationId, MessageId, OrgId } from "../ids.ts"
import type { ConditionBegan, ConditionFact, ConditionName } from "./facts.ts"

/** The law: a condition begins once, and only a begun one can end. */
const conditionMachine = setup({ types: { events: {} as ConditionFact } }).createMachine({
  id: "condition",
  initial: "ABSENT",
  states: { ABSENT: { on: { ConditionBegan: "PRESENT" } }, PRESENT: { on: { ConditionEnded: "ABSENT" } } }
})

export type Condition = SnapshotFrom<typeof conditionMachine>

export const initial: Condition = initialTransition(conditionMachine)[0]

export const step = (condition: Condition, fact: ConditionFact): Condition | null =>
  condition.can(fact) ? transition(conditionMachine, condition, fact)[0] : null

export const { evolve, replay } = foldOf(initial, step, ({ value }) => value)

export const after = (last: ConditionFact | null): Condition =>
  last === null || last.type === "ConditionEnded" ? initial : evolve(initial, last)

export interface Look {
  readonly begins: Omit<ConditionBegan, "type" | "orgId" | "condition"> | null
  readonly ends: boolean
}

export const decide = (
  condition: Condition,
  about: { readonly orgId: OrgId; readonly condition: ConditionName },
  { begins, ends }: Look
): ReadonlyArray<ConditionFact> => {
  if (condition.value === "PRESENT") return ends ? [{ type: "ConditionEnded", ...about }] : []
  return begins === null ? [] : [{ type: "ConditionBegan", ...about, ...begins }]
}

/** The look of a target that does not watch: a present condition ends. */
export const unwatched: Look = { begins: null, ends: true }

export interface OldestDue {
  readonly messageId: MessageId
  readonly destination: DestinationId
  readonly dueAt: DateTime.Utc
}

const CALM_SHARE = 0.5

export const lookAtBacklog = (now: DateTime.Utc, oldest: OldestDue | null, limitSeconds: number): Look => {
  if (oldest === null) return unwatched
  const { dueAt, messageId, destination } = oldest
  const waitedMs = DateTime.toEpochMillis(now) - DateTime.toEpochMillis(dueAt)
  return {
    begins: waitedMs > limitSeconds * 1000 ? { since: dueAt, limitSeconds, messageId, destination } : null,
    ends: waitedMs <= limitSeconds * 1000 * CALM_SHARE
  }
}

/** Whether any process reaches the broker, and since when. */
export interface BrokerReach {
  readonly away: boolean
  readonly since: DateTime.Utc
}

export const AWAY_MS = 10_000

/** `reach` is null while no process tries to reach the broker; then nothing begins or ends. */
export const lookAtBroker = (now: DateTime.Utc, reach: BrokerReach | null): Look => {
  if (reach === null) return { begins: null, ends: false }
  const awayMs = DateTime.toEpochMillis(now) - DateTime.toEpochMillis(reach.since)
  return { begins: reach.away && awayMs >= AWAY_MS ? { since: reach.since } : null, ends: !reach.away }
}
