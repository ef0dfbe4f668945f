/**
 * Creates, changes and reads destinations of any kind. The fields are decoded; the channel's record judges the whole.
 */
import { Effect, Redacted, Result } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { publicKeyOf } from "../accept/addressing.ts"
import type { AnyChannel, OwnershipNotKnown } from "../ports/Channels.ts"
import { type Alerting, type DestinationSettings, Destinations, type Secrets } from "../ports/Destinations.ts"
import { type Fault, SecretsNeeded } from "../ports/errors.ts"
import {
  apart,
  type Given,
  type GivenSecrets,
  isMove,
  lostWithin,
  notGivenAgain,
  removedWithin,
  resolved
} from "./hiddenTexts.ts"

export const settingsOf = (channel: AnyChannel, given: Given): DestinationSettings =>
  Object.fromEntries(
    Object.keys(channel.settings).map((name) => [name, settingOf(channel, name, given[name])])
  ) as unknown as DestinationSettings

const settingOf = ({ settings }: AnyChannel, name: string, value: unknown): unknown =>
  value ?? settings[name]!.default ?? null

/** `faults` are the caller's own: a refusal names all at once. */
export const createDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  asGiven: Given,
  secretsAsGiven: Readonly<Record<string, string>>,
  { alerting, faults: found = [] }: { readonly alerting?: Alerting; readonly faults?: ReadonlyArray<Fault> } = {}
) {
  const { given: shownOrNew, secrets: within } = apart(channel, asGiven)
  const { given, faults: unshown } = resolved(channel, null, shownOrNew)
  const givenSecrets = { ...secretsAsGiven, ...within }
  const settings = settingsOf(channel, given)
  const secretNames = Object.keys(givenSecrets)
  const draft = { settings, secretNames, secrets: givenSecrets, given: Object.keys(settings), before: null }
  const faults = [...found, ...unshown, ...faultsOf(channel, draft)]
  if (faults.length > 0) return Result.fail(faults)
  const disowned = yield* disownedBy(channel, settings, givenSecrets)
  if (disowned.length > 0) return Result.fail(disowned)
  const made = Object.entries(channel.secrets).flatMap(([name, { generate }]) =>
    generate === undefined || givenSecrets[name] !== undefined ? [] : [[name, generate(settings)] as const]
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
    published: publishedOf(channel, secrets),
    publicKey: key === null ? null : String(given[key]),
    lookup: lookup === null ? null : (secrets[lookup] ?? null),
    alerting: alerting ?? null,
    call: channel.callOf(settings)
  })
  const shown = Object.entries(channel.secrets).flatMap(([name, { generate, publishes }]) =>
    generate === undefined || publishes?.of(secrets[name]!) != null ? [] : [name]
  )
  return Result.succeed({
    destination,
    /** In the open, for the one answer that may show it. */
    shownOnce: Object.fromEntries(shown.map((name) => [name, Redacted.value(secrets[name]!)]))
  })
})

interface Beside {
  readonly alerting?: Partial<Alerting>
  readonly faults?: ReadonlyArray<Fault>
}

export const changeDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  given: Given,
  secrets: GivenSecrets = {},
  beside: Beside = {}
) {
  // Each time another writer has changed or removed it, so this ends.
  while (true) {
    const changed = yield* changeOnce(channel, orgId, id, given, secrets, beside)
    if (changed !== "Overtaken") return changed
  }
})

/** Changes the version that was judged, or nothing. */
const changeOnce = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  asGiven: Given,
  secretsAsGiven: GivenSecrets,
  { alerting, faults: found = [] }: Beside
) {
  const destinations = yield* Destinations
  const before = yield* readDestination(channel, orgId, id)
  if (before === null) return null
  const { given: shownOrNew, secrets: within } = apart(channel, asGiven)
  const { given, left, faults: unshown } = resolved(channel, before, shownOrNew)
  const secrets = { ...secretsAsGiven, ...removedWithin(channel, before, given), ...within }
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
    given: Object.keys(settings),
    before: before.settings
  }
  const faults = [...found, ...unshown, ...faultsOf(channel, draft), ...lostWithin(channel, before, given, secrets)]
  const needed = isMove(channel, before, draft.settings) ? notGivenAgain(channel, before, given, left, secrets) : []
  if (faults.length > 0) return Result.fail([...faults, ...needed])
  if (needed.length > 0) return yield* new SecretsNeeded({ faults: needed })
  const disowned = yield* disownedBy(channel, draft.settings, draft.secrets)
  if (disowned.length > 0) return Result.fail(disowned)
  const redacted = Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => [name, value === null ? null : Redacted.make(value)])
  )
  const lookup = lookupOf(channel)
  const after = yield* destinations.change(channel, orgId, id, {
    of: before.version,
    settings,
    secrets: redacted,
    ...(lookup !== null && redacted[lookup] && { lookup: redacted[lookup] }),
    ...(alerting && { alerting }),
    call: { before: channel.callOf(before.settings), after: channel.callOf(draft.settings) }
  })
  return after === null ? "Overtaken" : Result.succeed(after)
})

const disownedBy = (
  { ownership }: AnyChannel,
  settings: DestinationSettings,
  secrets: Readonly<Record<string, string>>
): Effect.Effect<ReadonlyArray<Fault>, OwnershipNotKnown> => ownership?.(settings, secrets) ?? Effect.succeed([])

export const readDestination = Effect.fnUntraced(function* (channel: AnyChannel, orgId: OrgId, id: DestinationId) {
  const destination = yield* (yield* Destinations).get(orgId, id)
  return destination?.channel === channel.name ? destination : null
})

export const publishedOf = ({ secrets: fields }: AnyChannel, secrets: Secrets): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, secret]) => {
      const publishes = fields[name]?.publishes
      const value = publishes?.of(secret) ?? null
      return publishes === undefined || value === null ? [] : [[publishes.name, value]]
    })
  )

const lookupOf = ({ secrets }: AnyChannel): string | null =>
  Object.keys(secrets).find((name) => secrets[name]!.lookup) ?? null

export const faultsOf = (channel: AnyChannel, draft: Parameters<AnyChannel["faultsOf"]>[0]): ReadonlyArray<Fault> => {
  const own = draft.secretNames.filter((name) => channel.secrets[name] === undefined)
  return [
    ...channel.faultsOf(draft),
    ...(own.length > channel.ownSecretsMax
      ? [{ field: "secrets", reason: `at most ${channel.ownSecretsMax} secrets` }]
      : [])
  ]
}
