/**
 * Changes to an org, its destinations, keys and event types; with the actor stored beside each fact they tell who made each change. The
 * rows of a destination or key hold its present state, these facts its history. Each fact names its org, because its
 * journal (`endpoint-<id>`, `http-target-<id>`, `whatsapp-account-<id>`, `key-<id>`, `event-type-<id>`) does not.
 *
 * Of the values of settings a fact holds only how the destination is called, and nothing of it that may be a secret.
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

/**
 * From this version of its settings on, requests to it look like this; the first one tells it for a new destination. What
 * an attempt called is found here by the version that its fact names.
 */
export const DestinationAddressed = fact("DestinationAddressed", {
  ...destination,
  version: Schema.Int,
  call: Call,
  /** The URL before; null of a new destination. */
  urlBefore: Schema.NullOr(Schema.String)
})

/** Whether requests go to another place from then on. */
export const isMove = ({ urlBefore, call }: typeof DestinationAddressed.Type): boolean =>
  urlBefore !== null && urlBefore !== call.url

/** `names` are the secrets that were replaced, added or removed. */
export const DestinationSecretsChanged = fact("DestinationSecretsChanged", { ...destination, names: Names })

/** The secrets of that name before it are good until `previousUntil` at the longest. */
export const DestinationSecretRotated = fact("DestinationSecretRotated", {
  ...destination,
  name: Schema.NonEmptyString,
  previousUntil: Schema.DateTimeUtcFromString
})

/** Its owner has seen it. */
export const DestinationSecretShown = fact("DestinationSecretShown", { ...destination, name: Schema.NonEmptyString })

export const DestinationPaused = fact("DestinationPaused", { ...destination, reason: Schema.NullOr(Schema.String) })

export const DestinationResumed = fact("DestinationResumed", { ...destination })

/** By Posthaste itself: nothing is sent to it until somebody enables it. `reason` is for people. */
export const DestinationDisabled = fact("DestinationDisabled", { ...destination, reason: Schema.NonEmptyString })

export const DestinationEnabled = fact("DestinationEnabled", { ...destination })

export const DestinationRemoved = fact("DestinationRemoved", { ...destination })

/** Null: it has no scopes, never expires, may be used from anywhere. A limit that is not named is none. */
export const KeyCreated = fact("KeyCreated", {
  orgId: OrgId,
  name: Schema.String,
  scopes: Schema.NullOr(Schema.Array(Schema.String)),
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  limits: Schema.Record(Schema.String, Schema.Number)
})

export const KeyRevoked = fact("KeyRevoked", { orgId: OrgId })

/** The catalogue of an org's event types. */
export const EventTypeCreated = fact("EventTypeCreated", { orgId: OrgId, name: Schema.NonEmptyString })

/** It has another definition; one that was archived is back. */
export const EventTypeChanged = fact("EventTypeChanged", { orgId: OrgId, name: Schema.NonEmptyString })

export const EventTypeArchived = fact("EventTypeArchived", { orgId: OrgId, name: Schema.NonEmptyString })

/** The operator set what holds for an org: `suspended` says why nothing goes in or out, or is null; `retry` may be null too. */
export const OrgChanged = fact("OrgChanged", {
  orgId: OrgId,
  name: Schema.NullOr(Schema.String),
  suspended: Schema.NullOr(Schema.String),
  limits: Schema.Record(Schema.String, Schema.Number),
  retry: Schema.NullOr(RetryPolicy),
  retention: Schema.Record(Schema.String, Schema.Number)
})

/** The shapes of all facts. */
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

/** Whether a stored fact of this name is about a destination, key or event type; such facts identify their journals. */
export const isConfigurationFact = (name: string): boolean => name in recorded

export const { toRecorded, fromRecorded } = codecOf<ConfigurationFact>(recorded)
