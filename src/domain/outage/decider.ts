/**
 * `initial · decide · evolve · replay` of the broker's outage that one alert target watches. A broker that restarts is away for
 * some seconds, and that is no outage.
 */
import { DateTime } from "effect"
import { initialTransition, type SnapshotFrom, transition } from "xstate"
import { foldOf } from "../fold.ts"
import type { OrgId } from "../ids.ts"
import type { OutageFact } from "./facts.ts"
import { outageMachine } from "./machine.ts"

export type Outage = SnapshotFrom<typeof outageMachine>

/** Whether some process reaches the broker, and since when it is as it is. */
export interface BrokerReach {
  readonly away: boolean
  readonly since: DateTime.Utc
}

/** How long a broker may be away before it is an outage. */
export const AWAY_MS = 10_000

export const initial: Outage = initialTransition(outageMachine)[0]

export const step = (outage: Outage, fact: OutageFact): Outage | null =>
  outage.can(fact) ? transition(outageMachine, outage, fact)[0] : null

export const { evolve, replay } = foldOf(initial, step, ({ value }) => value)

/** The state after the last fact of the journal, whatever came before. */
export const after = (last: OutageFact | null): Outage =>
  last === null || last.type === "BrokerBack" ? initial : evolve(initial, last)

/**
 * No facts while the look shows what is already known. `reach` is null while no process tries to reach the broker: that
 * neither begins nor ends an outage. A target that does not watch any more has none.
 */
export const decide = (
  outage: Outage,
  orgId: OrgId,
  { now, reach, watches }: { readonly now: DateTime.Utc; readonly reach: BrokerReach | null; readonly watches: boolean }
): ReadonlyArray<OutageFact> => {
  if (outage.value === "LOST") {
    return !watches || reach?.away === false ? [{ type: "BrokerBack", orgId }] : []
  }
  if (!watches || reach === null || !reach.away) return []
  const awayMs = DateTime.toEpochMillis(now) - DateTime.toEpochMillis(reach.since)
  return awayMs >= AWAY_MS ? [{ type: "BrokerLost", orgId, since: reach.since }] : []
}
