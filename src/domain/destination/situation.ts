/** The pause, disabling, suspension and calls of a destination and its org, folded from the facts of their journals. */
import type { DateTime } from "effect"
import type { Call } from "../delivery/exchange.ts"
import type { ConfigurationFact } from "./facts.ts"

export interface DatedConfigurationFact {
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly fact: ConfigurationFact
}

export interface Pause {
  readonly since: DateTime.Utc
  readonly by: string | null
  readonly reason: string | null
}

export const pauseIn = (history: ReadonlyArray<DatedConfigurationFact>): Pause | null => {
  const last = history.findLast(({ fact: { type } }) => type === "DestinationPaused" || type === "DestinationResumed")
  return last?.fact.type === "DestinationPaused" ? { since: last.at, by: last.actor, reason: last.fact.reason } : null
}

export interface Disabling {
  readonly since: DateTime.Utc
  readonly reason: string
}

export const disablingIn = (history: ReadonlyArray<DatedConfigurationFact>): Disabling | null => {
  const last = history.findLast(({ fact: { type } }) => type === "DestinationDisabled" || type === "DestinationEnabled")
  return last?.fact.type === "DestinationDisabled" ? { since: last.at, reason: last.fact.reason } : null
}

export interface Suspension {
  readonly since: DateTime.Utc
  readonly reason: string
}

export const suspensionIn = (history: ReadonlyArray<DatedConfigurationFact>): Suspension | null => {
  const changes = history.flatMap(({ at, fact }) =>
    fact.type === "OrgChanged" ? [{ at, reason: fact.suspended }] : []
  )
  const reason = changes.at(-1)?.reason ?? null
  const first = changes[changes.findLastIndex((change) => change.reason === null) + 1]
  return first === undefined || reason === null ? null : { since: first.at, reason }
}

export const isRemovedIn = (history: ReadonlyArray<DatedConfigurationFact>): boolean =>
  history.some(({ fact }) => fact.type === "DestinationRemoved")

export const callIn = (history: ReadonlyArray<DatedConfigurationFact>, version: number): Call | null => {
  const last = history.findLast(({ fact }) => fact.type === "DestinationAddressed" && fact.version <= version)
  return last?.fact.type === "DestinationAddressed" ? last.fact.call : null
}
