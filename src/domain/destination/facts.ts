/**
 * Changes to an org, its destinations, keys and event types; rows hold the present state, these facts the history. Each
 * fact names its org, because its journal (`endpoint-<id>`, `key-<id>`, …) does not. Of the values of settings a fact
 * holds only the call, without secrets.
 */
import { Schema } from "effect"
import { Call } from "../delivery/exchange.ts"
import { RetryPolicy } from "../delivery/retry.ts"
import { ChannelName, OrgId } from "../ids.ts"
import { codecOf, type FactIn, fact } from "../recorded.ts"

const destination = { orgId: OrgId, channel: ChannelName }
const Names = Schema.Array(Schema.NonEmptyString)

export const DestinationCreated = fact("DestinationCreated", { ...destination })

/** `fields` are the settings that the request named, also those whose value stayed the same. */
export const DestinationChanged = fact("DestinationChanged", { ...destination, fields: Names })

/** The call from this version of the settings on. An attempt's fact names the version. */
export const DestinationAddressed = fact("DestinationAddressed", {
  ...destination,
  version: Schema.Int,
  call: Call,
  urlBefore: Schema.NullOr(Schema.String)
})

export const isMove = ({ urlBefore, call }: typeof DestinationAddressed.Type): boolean =>
  urlBefore !== null && urlBefore !== call.url

export const DestinationSecretsChanged = fact("DestinationSecretsChanged", { ...destination, names: Names })

/** Its earlier secrets are good until `previousUntil` at the longest. */
export const DestinationSecretRotated = fact("DestinationSecretRotated", {
  ...destination,
  name: Schema.NonEmptyString,
  previousUntil: Schema.DateTimeUtcFromString
})

export const DestinationSecretShown = fact("DestinationSecretShown", { ...destination, name: Schema.NonEmptyString })

export const DestinationPaused = fact("DestinationPaused", { ...destination, reason: Schema.NullOr(Schema.String) })

export const DestinationResumed = fact("DestinationResumed", { ...destination })

/** By Posthaste itself; a person enables it. `reason` is for people. */
export const DestinationDisabled = fact("DestinationDisabled", { ...destination, reason: Schema.NonEmptyString })

export const DestinationEnabled = fact("DestinationEnabled", { ...destination })

export const DestinationRemoved = fact("DestinationRemoved", { ...destination })

/** Null: no scopes, never expires, any network. A limit that is not named is none. */
export const KeyCreated = fact("KeyCreated", {
  orgId: OrgId,
  name: Schema.String,
  scopes: Schema.NullOr(Schema.Array(Schema.String)),
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  limits: Schema.Record(Schema.String, Schema.Number)
})

export const KeyRevoked = fact("KeyRevoked", { orgId: OrgId })

export const EventTypeCreated = fact("EventTypeCreated", { orgId: OrgId, name: Schema.NonEmptyString })

export const EventTypeChanged = fact("EventTypeChanged", { orgId: OrgId, name: Schema.NonEmptyString })

export const EventTypeArchived = fact("EventTypeArchived", { orgId: OrgId, name: Schema.NonEmptyString })

/** `suspended` is the reason why nothing goes in or out, or null. */
export const OrgChanged = fact("OrgChanged", {
  orgId: OrgId,
  name: Schema.NullOr(Schema.String),
  suspended: Schema.NullOr(Schema.String),
  limits: Schema.Record(Schema.String, Schema.Number),
  retry: Schema.NullOr(RetryPolicy),
  retention: Schema.Record(Schema.String, Schema.Number)
})

export const recorded = {
  "DestinationCreated@1": DestinationCreated,
  "DestinationChanged@1": DestinationChanged,
  "DestinationAddressed@1": DestinationAddressed,
  "DestinationSecretsChanged@1": DestinationSecretsChanged,
  "DestinationSecretRotated@1": DestinationSecretRotated,
  "DestinationSecretShown@1": DestinationSecretShown,
  "DestinationPaused@1": DestinationPaused,
  "DestinationResumed@1": DestinationResumed,
  "DestinationDisabled@1": DestinationDisabled,
  "DestinationEnabled@1": DestinationEnabled,
  "DestinationRemoved@1": DestinationRemoved,
  "KeyCreated@1": KeyCreated,
  "KeyRevoked@1": KeyRevoked,
  "EventTypeCreated@1": EventTypeCreated,
  "EventTypeChanged@1": EventTypeChanged,
  "EventTypeArchived@1": EventTypeArchived,
  "OrgChanged@1": OrgChanged
} as const
export type ConfigurationFact = FactIn<typeof recorded>

export const isConfigurationFact = (name: string): boolean => name in recorded

export const { toRecorded, fromRecorded } = codecOf<ConfigurationFact>(recorded)
