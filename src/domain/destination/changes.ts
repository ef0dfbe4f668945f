/** The facts that a change to a destination means, and the journals they stand in. */
import type { ChannelName, OrgId } from "../ids.ts"
import type { ConfigurationFact } from "./facts.ts"

/** What is said of a channel's destinations in facts, and what their journals are called before the id. */
export interface DestinationKind {
  readonly name: ChannelName
  readonly journal: string
}

export const journalOf = ({ journal }: DestinationKind, id: string) => `${journal}-${id}` as const

export const journalOfKey = (id: string) => `key-${id}` as const

interface Destination {
  readonly orgId: OrgId
  readonly channel: ChannelName
}

/** `settings` and `secrets` by name: their values stay where they are. Nothing set is no fact. */
export const changesOf = (
  { orgId, channel }: Destination,
  settings: object,
  secrets: object = {}
): ReadonlyArray<ConfigurationFact> => {
  const fields = Object.keys(settings).toSorted()
  const names = Object.keys(secrets).toSorted()
  return [
    ...(fields.length === 0 ? [] : [{ type: "DestinationChanged", orgId, channel, fields } as const]),
    ...(names.length === 0 ? [] : [{ type: "DestinationSecretsChanged", orgId, channel, names } as const])
  ]
}

export const pauseOf = ({ orgId, channel }: Destination, paused: boolean): ConfigurationFact => ({
  type: paused ? "DestinationPaused" : "DestinationResumed",
  orgId,
  channel
})
