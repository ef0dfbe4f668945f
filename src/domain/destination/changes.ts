/** The facts of a change to a destination, and the journals they belong to. */
import type { Call } from "../delivery/exchange.ts"
import type { ChannelName, OrgId } from "../ids.ts"
import type { ConfigurationFact } from "./facts.ts"

/** How facts name a channel's destinations, and the prefix of their journals. */
export interface DestinationKind {
  readonly name: ChannelName
  readonly journal: string
}

export const journalOf = ({ journal }: DestinationKind, id: string) => `${journal}-${id}` as const

/** All journals that are about a destination, by the prefix of its own. */
export const journalsOf = (journal: string, id: string) =>
  [journal, "circuit", "condition-oldestDue", "condition-broker"].map((prefix) => `${prefix}-${id}` as const)

export const journalOfKey = (id: string) => `key-${id}` as const

interface Destination {
  readonly orgId: OrgId
  readonly channel: ChannelName
}

/** `settings` and `secrets` are names: the values are not stored in facts. A change that sets nothing makes no fact. */
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

/** How it is called from a version of its settings on; no fact where that stays the same, or nothing can be told. */
export const addressingOf = (
  about: Destination,
  version: number,
  call: Call | null,
  before: Call | null
): ReadonlyArray<ConfigurationFact> =>
  call === null || JSON.stringify(call) === JSON.stringify(before)
    ? []
    : [{ type: "DestinationAddressed", ...about, version, call, urlBefore: before?.url ?? null }]

/** A reason of null enables it again. */
export const disablingOf = ({ orgId, channel }: Destination, reason: string | null): ConfigurationFact =>
  reason === null
    ? { type: "DestinationEnabled", orgId, channel }
    : { type: "DestinationDisabled", orgId, channel, reason }

/** A reason is kept with a pause only. */
export const pauseOf = ({ orgId, channel }: Destination, paused: boolean, reason: string | null): ConfigurationFact =>
  paused ? { type: "DestinationPaused", orgId, channel, reason } : { type: "DestinationResumed", orgId, channel }
