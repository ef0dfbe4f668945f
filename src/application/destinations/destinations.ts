/**
 * Creates and changes destinations of any kind. The HTTP handlers have decoded the fields; the record of the channel
 * judges the destination as a whole.
 */
import { DateTime, Effect, Redacted, Result } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { publicKeyOf } from "../accept/addressing.ts"
import type { Fault } from "../errors.ts"
import type { AnyChannel, OwnershipNotKnown } from "../ports/Channels.ts"
import {
  type Alerting,
  type Destination,
  type DestinationSettings,
  Destinations,
  goodAt,
  type OpenDestination,
  type Secrets
} from "../ports/Destinations.ts"

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

/** `faults` are those that the caller has found already: a refusal names all at once. */
export const createDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  asGiven: Given,
  secretsAsGiven: Readonly<Record<string, string>>,
  { alerting, faults: found = [] }: { readonly alerting?: Alerting; readonly faults?: ReadonlyArray<Fault> } = {}
) {
  const { given, secrets: within } = apart(channel, asGiven)
  const givenSecrets = { ...secretsAsGiven, ...within }
  const settings = settingsOf(channel, given)
  const secretNames = Object.keys(givenSecrets)
  const draft = { settings, secretNames, secrets: givenSecrets, given: Object.keys(settings), before: null }
  const faults = [...found, ...faultsOf(channel, draft)]
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

/** Null when the org has no such destination. */
export const changeDestination = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  given: Given,
  secrets: GivenSecrets = {},
  beside: Beside = {}
) {
  // Each time somebody else has changed or removed it, so this ends.
  while (true) {
    const changed = yield* changeOnce(channel, orgId, id, given, secrets, beside)
    if (changed !== "Overtaken") return changed
  }
})

/** What is judged as a whole is changed as it was judged, or not at all. */
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
  const { given, secrets: within } = apart(channel, asGiven)
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
  const faults = [...found, ...faultsOf(channel, draft), ...lostWithin(channel, before, given, secrets)]
  if (faults.length > 0) return Result.fail(faults)
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

/** The settings without the secrets that came in their texts, and those secrets. */
const apart = ({ secrets }: AnyChannel, given: Given) => {
  const settings: Record<string, unknown> = { ...given }
  const taken: Record<string, string> = {}
  for (const [name, { within }] of Object.entries(secrets)) {
    const text = within && settings[within.setting]
    if (typeof text !== "string") continue
    const found = within!.takenOut(text)
    settings[within!.setting] = found.text
    if (found.secret !== null) taken[name] = found.secret
  }
  return { given: settings, secrets: taken }
}

/** A text that is removed takes its secret along. */
const removedWithin = ({ secrets }: AnyChannel, { secretNames }: Destination, given: Given): GivenSecrets =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, { within }]) =>
      within && given[within.setting] === null && secretNames.includes(name) ? [[name, null]] : []
    )
  )

/** Another text without the secret would send the old one to another place. The same text is a change of nothing. */
const lostWithin = (
  channel: AnyChannel,
  before: Destination,
  given: Given,
  secrets: GivenSecrets
): ReadonlyArray<Fault> =>
  Object.entries(channel.secrets).flatMap(([name, { within }]) => {
    if (within === undefined || secrets[name] !== undefined || !before.secretNames.includes(name)) return []
    const { [within.setting]: text } = before.settings as unknown as Given
    return given[within.setting] === undefined || given[within.setting] === text
      ? []
      : [{ field: within.setting, reason: `must bring its ${name} again when it changes` }]
  })

/** The secret of a channel that its owner can rotate and see. */
export const rotatingSecretOf = ({ secrets }: AnyChannel): string | null =>
  Object.keys(secrets).find((name) => secrets[name]!.rotates) ?? null

/**
 * Puts a new secret, or the given one, in the place of the destination's own, which stays good for the grace. A grace of
 * nothing ends every earlier secret at once. Null when the org has no such destination.
 */
export const rotateSecret = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  name: string,
  given: string | null,
  graceSeconds: number
) {
  const before = yield* readDestination(channel, orgId, id)
  if (before === null) return null
  const { secretNames, settings } = before
  const secrets: Record<string, string> = given === null ? {} : { [name]: given }
  const faults = faultsOf(channel, { settings, secretNames, secrets, given: [], before: settings })
  if (faults.length > 0) return Result.fail(faults)
  const secret = given === null ? channel.secrets[name]!.generate!(settings) : Redacted.make(given)
  const previousUntil = DateTime.add(yield* DateTime.now, { seconds: graceSeconds })
  const published = publishedOf(channel, { [name]: secret })
  const rotation = { name, secret, published, previousUntil }
  const open = yield* (yield* Destinations).rotateSecret(channel, orgId, id, rotation)
  return open === null ? null : Result.succeed(yield* currentOf(channel, open, name))
})

/**
 * The secret as it is, for its owner, or in its place what is published of it; null when the org has no such
 * destination.
 */
export const showSecret = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  name: string
) {
  const destinations = yield* Destinations
  const destination = yield* readDestination(channel, orgId, id)
  if (destination === null) return null
  // Of what everybody may know, the audit has nothing to tell.
  const open =
    publicNameOf(channel, destination, name) === null
      ? yield* destinations.showSecret(channel, orgId, id, name)
      : yield* destinations.forSending(orgId, id)
  return open === null ? null : yield* currentOf(channel, open, name)
})

/** The name of what is published of the secret; null where nothing is. */
const publicNameOf = ({ secrets }: AnyChannel, { published }: Destination, name: string): string | null => {
  const field = secrets[name]!.publishes?.name
  return field !== undefined && published[field] !== undefined ? field : null
}

const publishedOf = ({ secrets: fields }: AnyChannel, secrets: Secrets): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, secret]) => {
      const publishes = fields[name]?.publishes
      const value = publishes?.of(secret) ?? null
      return publishes === undefined || value === null ? [] : [[publishes.name, value]]
    })
  )

/** The secret or what is published of it, under its name, and when the last one before it ends. */
const currentOf = (channel: AnyChannel, { destination, secrets, previousSecrets }: OpenDestination, name: string) =>
  Effect.map(DateTime.now, (now) => {
    const published = publicNameOf(channel, destination, name)
    const ends = goodAt(previousSecrets, now).filter((each) => each.name === name)
    return {
      shown:
        published === null
          ? { [name]: Redacted.value(secrets[name]!) }
          : { [published]: destination.published[published]! },
      previousUntil: ends.reduce<DateTime.Utc | null>(
        (latest, { until }) => (latest === null ? until : DateTime.max(latest, until)),
        null
      )
    }
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
