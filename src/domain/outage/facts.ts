/**
 * Facts about the outage of Posthaste's own broker that one alert target watches, on the stream `outage-<alert target>`: that
 * no process had reached the broker for some time, and that one reaches it again.
 */
import { Schema } from "effect"
import { OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

export const BrokerLost = fact("BrokerLost", {
  orgId: OrgId,
  /** Since when nobody reaches it. */
  since: Schema.DateTimeUtcFromString
})

export const BrokerBack = fact("BrokerBack", { orgId: OrgId })

/** Every shape ever written. */
export const recorded = { "BrokerLost@1": BrokerLost, "BrokerBack@1": BrokerBack } as const
export type OutageFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<OutageFact>(recorded)
