/**
 * Settings that hide something: texts with a secret within, such as a password in a URL, and texts that are shown
 * masked. A shown text may be given back and stands for the stored one, unless the destination moves to another place.
 */
import { MASKED } from "../../domain/delivery/exchange.ts"
import type { AnyChannel } from "../ports/Channels.ts"
import type { Destination, DestinationSettings } from "../ports/Destinations.ts"
import type { Fault } from "../ports/errors.ts"
import type { Setting } from "../ports/fields.ts"

/** Fields by name. A setting that is null is its default. */
export type Given = Readonly<Record<string, unknown>>

export type GivenSecrets = Readonly<Record<string, string | null>>

export const apart = ({ secrets }: AnyChannel, given: Given) => {
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

/** A removed text takes its secret along. */
export const removedWithin = ({ secrets }: AnyChannel, { secretNames }: Destination, given: Given): GivenSecrets =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([name, { within }]) =>
      within && given[within.setting] === null && secretNames.includes(name) ? [[name, null]] : []
    )
  )

type Texts = Readonly<Record<string, string>>

/** The texts of a setting that hides something: by name, or one under `ONLY`. */
export const textsIn = (value: unknown): Texts =>
  typeof value === "string" ? { [ONLY]: value } : ((value ?? {}) as Texts)
const withTexts = (value: unknown, texts: Texts): unknown => (typeof value === "string" ? texts[ONLY] : texts)
const ONLY = ""

const hidingOf = ({ settings }: AnyChannel) =>
  Object.entries(settings as Readonly<Record<string, Setting>>).flatMap(([name, { hides }]) =>
    hides === undefined ? [] : [{ name, hides }]
  )

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
 * The settings with the stored texts in place of shown ones that were given back. `left` names the settings with such
 * texts: they say nothing of their secrets.
 */
export const resolved = (channel: AnyChannel, before: Destination | null, given: Given) => {
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

/** True if secrets would go to a place where none went before. */
export const isMove = ({ placesOf }: AnyChannel, { settings }: Destination, after: DestinationSettings): boolean => {
  if (placesOf === undefined) return false
  const known = new Set(placesOf(settings).map(placeOf))
  return placesOf(after).some((url) => !known.has(placeOf(url)))
}

const placeOf = (text: string): string => {
  const url = URL.parse(text)
  return url === null ? text : `${url.protocol}//${url.username}@${url.host}`
}

/**
 * The faults for secrets that would move to another place: who may change a destination need not know its secrets, and
 * would learn them there.
 */
export const notGivenAgain = (
  channel: AnyChannel,
  before: Destination,
  given: Given,
  left: ReadonlySet<string>,
  secrets: GivenSecrets
): ReadonlyArray<Fault> => {
  const reason = "must be given again, or removed, when the destination moves to another place"
  const settings = before.settings as unknown as Given
  // A place of secrets is not itself taken anywhere by another setting.
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
 * Another text without the secret would use the old one for something else. For a text that names a place of secrets,
 * the place counts.
 */
export const lostWithin = (
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
