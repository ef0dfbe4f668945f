import type { Call } from "../delivery/exchange.ts"
import type { ChannelName, OrgId } from "../ids.ts"
import type { ConfigurationFact } from "./facts.ts"

/** The name of a channel in facts, and the prefix of its destinations' journals. */
export interface DestinationKind {
  readonly name: ChannelName
  readonly journal: string
}

export const journalOf = ({ journal }: DestinationKind, id: string) => `${journal}-${id}` as const

export const journalsOf = (journal: string, id: string) =>
  [journal, "circuit", "condition-oldestDue", "condition-broker"].map((prefix) => `${prefix}-${id}` as const)

export const journalOfKey = (id: string) => `key-${id}` as const

interface Destination {
  readonly orgId: OrgId
  readonly channel: ChannelName
}

/** `settings` and `secrets` are names: facts store no values. A change that sets nothing makes no fact. */
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

export const creationOf = (about: Destination, call: Call | null): ReadonlyArray<ConfigurationFact> => [
  { type: "DestinationCreated", ...about },
  ...addressingOf(about, 1, call, null)
]

/** The call from this version of the settings on; no fact where it stays the same or the channel has none. */
export const addressingOf = (
  about: Destination,
  version: number,
  call: Call | null,
  before: Call | null
): ReadonlyArray<ConfigurationFact> =>
  call === null || JSON.stringify(call) === JSON.stringify(before)
    ? []
    : [{ type: "DestinationAddressed", ...about, version, call, urlBefore: before?.url ?? null }]

export const disablingOf = ({ orgId, channel }: Destination, reason: string | null): ConfigurationFact =>
  reason === null
    ? { type: "DestinationEnabled", orgId, channel }
    : { type: "DestinationDisabled", orgId, channel, reason }

export const pauseOf = ({ orgId, channel }: Destination, paused: boolean, reason: string | null): ConfigurationFact =>
  paused ? { type: "DestinationPaused", orgId, channel, reason } : { type: "DestinationResumed", orgId, channel }
