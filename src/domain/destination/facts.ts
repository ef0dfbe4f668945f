/**
 * Changes to an org's destinations and keys; with the actor stored beside each fact they tell who made each change. The
 * rows of a destination or key hold its present state, these facts its history. Each fact names its org, because its
 * journal (`endpoint-<id>`, `http-target-<id>`, `whatsapp-account-<id>`, `key-<id>`) does not.
 *
 * No fact holds a setting's value: URLs and headers can hold secrets.
 */
import { Schema } from "effect"
import { ChannelName, OrgId } from "../ids.ts"

const destination = { orgId: OrgId, channel: ChannelName }
const Names = Schema.Array(Schema.NonEmptyString)

export const DestinationCreated = Schema.Struct({ type: Schema.tag("DestinationCreated"), ...destination })

/** `fields` are the settings that the request named, also those whose value stayed the same. */
export const DestinationChanged = Schema.Struct({
  type: Schema.tag("DestinationChanged"),
  ...destination,
  fields: Names
})

/** `names` are the secrets that were replaced, added or removed. */
export const DestinationSecretsChanged = Schema.Struct({
  type: Schema.tag("DestinationSecretsChanged"),
  ...destination,
  names: Names
})

/** The secrets of that name before it are good until `previousUntil` at the longest. */
export const DestinationSecretRotated = Schema.Struct({
  type: Schema.tag("DestinationSecretRotated"),
  ...destination,
  name: Schema.NonEmptyString,
  previousUntil: Schema.DateTimeUtcFromString
})

/** Its owner has seen it. */
export const DestinationSecretShown = Schema.Struct({
  type: Schema.tag("DestinationSecretShown"),
  ...destination,
  name: Schema.NonEmptyString
})

export const DestinationPaused = Schema.Struct({ type: Schema.tag("DestinationPaused"), ...destination })

export const DestinationResumed = Schema.Struct({ type: Schema.tag("DestinationResumed"), ...destination })

export const DestinationRemoved = Schema.Struct({ type: Schema.tag("DestinationRemoved"), ...destination })

export const KeyCreated = Schema.Struct({ type: Schema.tag("KeyCreated"), orgId: OrgId, name: Schema.String })

export const KeyRevoked = Schema.Struct({ type: Schema.tag("KeyRevoked"), orgId: OrgId })

export const ConfigurationFact = Schema.Union([
  DestinationCreated,
  DestinationChanged,
  DestinationSecretsChanged,
  DestinationSecretRotated,
  DestinationSecretShown,
  DestinationPaused,
  DestinationResumed,
  DestinationRemoved,
  KeyCreated,
  KeyRevoked
])
export type ConfigurationFact = typeof ConfigurationFact.Type

/** Every shape ever written, keyed by `type@version`. The highest version is the one we write. */
export const recorded = {
  "DestinationCreated@1": DestinationCreated,
  "DestinationChanged@1": DestinationChanged,
  "DestinationSecretsChanged@1": DestinationSecretsChanged,
  "DestinationSecretRotated@1": DestinationSecretRotated,
  "DestinationSecretShown@1": DestinationSecretShown,
  "DestinationPaused@1": DestinationPaused,
  "DestinationResumed@1": DestinationResumed,
  "DestinationRemoved@1": DestinationRemoved,
  "KeyCreated@1": KeyCreated,
  "KeyRevoked@1": KeyRevoked
} as const
