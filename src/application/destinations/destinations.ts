/**
 * Creates and changes destinations of any kind. The HTTP handlers have decoded the fields; the record of the channel
 * judges the destination as a whole.
 */
import { DateTime, Effect, Redacted, Result } from "effect"
import { MASKED } from "../../domain/delivery/exchange.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { publicKeyOf } from "../accept/addressing.ts"
import { type Fault, SecretsNeeded } from "../errors.ts"
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
import type { Setting } from "./fields.ts"

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

/** Null when the org has no such destination. Fails with `SecretsNeeded`. */
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

type Texts = Readonly<Record<string, string>>

/** What a setting that hides something holds: texts by their names, or one, which needs none. */
export const textsIn = (value: unknown): Texts =>
  typeof value === "string" ? { [ONLY]: value } : ((value ?? {}) as Texts)
const withTexts = (value: unknown, texts: Texts): unknown => (typeof value === "string" ? texts[ONLY] : texts)
const ONLY = ""

const hidingOf = ({ settings }: AnyChannel) =>
  Object.entries(settings as Readonly<Record<string, Setting>>).flatMap(([name, { hides }]) =>
    hides === undefined ? [] : [{ name, hides }]
  )

/** The settings of a destination as they are shown. */
export const shownSettings = (channel: AnyChannel, settings: DestinationSettings): Given => {
  const shown: Record<string, unknown> = { ...settings }
  for (const { name, hides } of hidingOf(channel)) {
    if (shown[name] == null) continue
    const texts = Object.entries(textsIn(shown[name])).map(([of, text]) => [of, hides(text)] as const)
    shown[name] = withTexts(shown[name], Object.fromEntries(texts))
  }
  return shown
}

/**
 * The settings with the stored texts in the place of those that were given back as they are shown. `left` names the settings
 * of which texts were: they say nothing of their secrets.
 */
const resolved = (channel: AnyChannel, before: Destination | null, given: Given) => {
  const settings: Record<string, unknown> = { ...given }
  const left = new Set<string>()
  const faults: Array<Fault> = []
  for (const { name, hides } of hidingOf(channel)) {
    if (settings[name] == null) continue
    const stored = textsIn((before?.settings as unknown as Given | undefined)?.[name])
    const byName = new Map(Object.entries(stored).map(([of, text]) => [of.toLowerCase(), text]))
    const found = Object.fromEntries(
      Object.entries(textsIn(settings[name])).map(([of, text]) => {
        if (!text.includes(MASKED) || hides(text) !== text) return [of, text]
        const kept = byName.get(of.toLowerCase())
        if (kept !== undefined && hides(kept) === text) {
          left.add(name)
          return [of, kept]
        }
        const what = of === ONLY ? "it holds ***" : `the value of ${of} is ${text}`
        faults.push({ field: name, reason: `${what}, which stands for one that is not shown` })
        return [of, text]
      })
    )
    settings[name] = withTexts(settings[name], found)
  }
  return { given: settings, left, faults }
}

/** Whether secrets would go to a place where none went before. */
const isMove = ({ placesOf }: AnyChannel, { settings }: Destination, after: DestinationSettings): boolean => {
  if (placesOf === undefined) return false
  const known = new Set(placesOf(settings).map(placeOf))
  return placesOf(after).some((url) => !known.has(placeOf(url)))
}

const placeOf = (text: string): string => {
  const url = URL.parse(text)
  return url === null ? text : `${url.protocol}//${url.username}@${url.host}`
}

/**
 * What a destination would take along to another place, field by field: whoever may change it need not know its secrets, and
 * would learn them there.
 */
const notGivenAgain = (
  channel: AnyChannel,
  before: Destination,
  given: Given,
  left: ReadonlySet<string>,
  secrets: GivenSecrets
): ReadonlyArray<Fault> => {
  const reason = "must be given again, or removed, when the destination moves to another place"
  const settings = before.settings as unknown as Given
  // What says where secrets go is taken nowhere by another such setting.
  const places = channel.placesOf?.(before.settings) ?? []
  const hidden = hidingOf(channel).flatMap(({ name, hides }) => {
    const texts = Object.values(textsIn(settings[name]))
    const isOpen = texts.every((text) => hides(text) === text || places.includes(text))
    return isOpen || (given[name] !== undefined && !left.has(name)) ? [] : [{ field: name, reason }]
  })
  const kept = before.secretNames.flatMap((name) => {
    if (secrets[name] !== undefined) return []
    const field = channel.secrets[name]
    if (field === undefined) return [{ field: `secrets.${name}`, reason }]
    if (field.staysHere) return []
    return field.within === undefined
      ? [{ field: name, reason }]
      : [{ field: field.within.setting, reason: `${reason}: it must bring its ${name}` }]
  })
  return [...hidden, ...kept]
}

/**
 * Another text without the secret would use the old one for something else. The same text is a change of nothing, and of a
 * text that says where secrets go, it counts where that is.
 */
const lostWithin = (
  channel: AnyChannel,
  before: Destination,
  given: Given,
  secrets: GivenSecrets
): ReadonlyArray<Fault> =>
  Object.entries(channel.secrets).flatMap(([name, { within }]) => {
    if (within === undefined || secrets[name] !== undefined || !before.secretNames.includes(name)) return []
    const { [within.setting]: text } = before.settings as unknown as Given
    if (channel.placesOf?.(before.settings).includes(String(text))) return []
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
