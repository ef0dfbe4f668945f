/**
 * Making and changing destinations of any kind, judged by the record of their channel. Whoever asks has decoded the
 * fields; here they are put together and judged as a whole.
 */
import { Effect, Redacted, Result } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { publicKeyOf } from "../accept/addressing.ts"
import type { Fault } from "../errors.ts"
import type { AnyChannel } from "../ports/Channels.ts"
import { type Alerting, type DestinationSettings, Destinations } from "../ports/Destinations.ts"

/** Fields by name. A setting that is null is its default. */
type Given = Readonly<Record<string, unknown>>

/** Null removes a secret. */
export type GivenSecrets = Readonly<Record<string, string | null>>

/** All settings of a new destination. */
export const settingsOf = (channel: AnyChannel, given: Given): DestinationSettings =>
  Object.fromEntries(
    Object.keys(channel.settings).map((name) => [name, settingOf(channel, name, given[name])])
  ) as unknown as DestinationSettings

const settingOf = ({ settings }: AnyChannel, name: string, value: unknown): unknown =>
  value ?? settings[name]!.default ?? null

/** `faults` are those that the one who asks has found already: all are told at once. */
export const createDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  given: Given,
  givenSecrets: Readonly<Record<string, string>>,
  { alerting, faults: found = [] }: { readonly alerting?: Alerting; readonly faults?: ReadonlyArray<Fault> } = {}
) {
  const settings = settingsOf(channel, given)
  const secretNames = Object.keys(givenSecrets)
  const draft = { settings, secretNames, secrets: givenSecrets, given: Object.keys(settings) }
  const faults = [...found, ...faultsOf(channel, draft)]
  if (faults.length > 0) return Result.fail(faults)
  const made = Object.entries(channel.secrets).flatMap(([name, { generate }]) =>
    generate === undefined || givenSecrets[name] !== undefined ? [] : [[name, generate()] as const]
  )
  const secrets = Object.fromEntries([
    ...Object.entries(givenSecrets).map(([name, value]) => [name, Redacted.make(value)] as const),
    ...made
  ])
  const key = publicKeyOf(channel)
  const lookup = lookupOf(channel)
  const destination = yield* (yield* Destinations).create(channel, orgId, {
    settings,
    secrets,
    publicKey: key === null ? null : String(given[key]),
    lookup: lookup === null ? null : (secrets[lookup] ?? null),
    alerting: alerting ?? null
  })
  const shown = Object.keys(channel.secrets).filter((name) => channel.secrets[name]!.generate !== undefined)
  return Result.succeed({
    destination,
    /** In the open, for the one answer that may show them. */
    shownOnce: Object.fromEntries(shown.map((name) => [name, Redacted.value(secrets[name]!)]))
  })
})

/** Null when the org has no such destination. */
export const changeDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  given: Given,
  secrets: GivenSecrets = {},
  {
    alerting,
    faults: found = []
  }: { readonly alerting?: Partial<Alerting>; readonly faults?: ReadonlyArray<Fault> } = {}
) {
  const destinations = yield* Destinations
  const before = yield* readDestination(channel, orgId, id)
  if (before === null) return null
  const settings = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, settingOf(channel, name, value)])
  )
  const names = new Set([...before.secretNames, ...Object.keys(secrets)])
  const draft = {
    settings: { ...before.settings, ...settings },
    secretNames: [...names].filter((name) => secrets[name] !== null),
    secrets: Object.fromEntries(
      Object.entries(secrets).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
    ),
    given: Object.keys(settings)
  }
  const faults = [...found, ...faultsOf(channel, draft)]
  if (faults.length > 0) return Result.fail(faults)
  const redacted = Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => [name, value === null ? null : Redacted.make(value)])
  )
  const lookup = lookupOf(channel)
  const after = yield* destinations.change(channel, orgId, id, {
    settings,
    secrets: redacted,
    ...(lookup !== null && redacted[lookup] && { lookup: redacted[lookup] }),
    ...(alerting && { alerting })
  })
  return after === null ? null : Result.succeed(after)
})

/** Null when the org has no such destination of this channel. */
export const readDestination = Effect.fnUntraced(function* (channel: AnyChannel, orgId: OrgId, id: DestinationId) {
  const destination = yield* (yield* Destinations).get(orgId, id)
  return destination?.channel === channel.name ? destination : null
})

const lookupOf = ({ secrets }: AnyChannel): string | null =>
  Object.keys(secrets).find((name) => secrets[name]!.lookup) ?? null

const faultsOf = (channel: AnyChannel, draft: Parameters<AnyChannel["faultsOf"]>[0]): ReadonlyArray<Fault> => {
  const own = draft.secretNames.filter((name) => channel.secrets[name] === undefined)
  return [
    ...channel.faultsOf(draft),
    ...(own.length > channel.ownSecretsMax
      ? [{ field: "secrets", reason: `at most ${channel.ownSecretsMax} secrets` }]
      : [])
  ]
}
