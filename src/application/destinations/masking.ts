/**
 * Takes the secrets of a destination out of its answers before they are kept: secrets, values of headers and parameters
 * of the URL, plain and as an answer may repeat them: in JSON, HTML, percent-encoded, hex and base64, in any case, and
 * cut off at the end. A far side that wants to leak a secret it knows can always encode it otherwise.
 */
import { Redacted } from "effect"
import { MASKED } from "../../domain/delivery/exchange.ts"
import type { AnyChannel, Reply } from "../ports/Channels.ts"
import type { OpenDestination } from "../ports/Destinations.ts"
import type { Setting } from "../ports/fields.ts"
import { textsIn } from "./hiddenTexts.ts"

/** A shorter secret would be found everywhere. */
const SECRET_MIN = 4
/** For texts that may be plain words: a part of a header's value, a parameter. */
const PERHAPS_MIN = 8
/** Fewer characters of base64 occur by chance. */
const ENCODED_MIN = 8
/** The shortest text that may have been cut (net/keptAnswer.ts). */
const CUT_MIN = 256
/** For ids, which are useless without their middle. */
export const CERTAIN_MIN = 8

/** The text without secrets; those shorter than `shortest` stay. */
export type Mask = (text: string, shortest?: number) => string

interface Needle {
  /** Folded. */
  readonly text: string
  /** Within base64, which then is masked whole. */
  readonly isEncoded: boolean
}

const ofOpen = new WeakMap<OpenDestination, Mask>()
/**
 * A destination is opened again every second with the same secrets, and needles cost 0.1 ms to make. By all of the
 * secrets; the last used at the end.
 */
const ofSecrets = new Map<string, Mask>()
const REMEMBERED = 1_000

export const maskOf = (channel: AnyChannel, open: OpenDestination): Mask => {
  const known = ofOpen.get(open)
  if (known !== undefined) return known
  const looked = lookedFor(channel, open)
  const key = JSON.stringify([...looked])
  const mask = ofSecrets.get(key) ?? maskFor(looked)
  ofSecrets.delete(key)
  ofSecrets.set(key, mask)
  if (ofSecrets.size > REMEMBERED) ofSecrets.delete(ofSecrets.keys().next().value!)
  ofOpen.set(open, mask)
  return mask
}

/** A reply without the secrets that its far side repeated. */
export const masked = (channel: AnyChannel, open: OpenDestination, reply: Reply): Reply => {
  const { outcome, responseBody, responseHeaders } = reply
  const isAccepted = outcome.type === "Accepted"
  if (responseBody === null && responseHeaders === undefined && isAccepted && outcome.providerMessageId === null) {
    return reply
  }
  const mask = maskOf(channel, open)
  return {
    ...reply,
    outcome: isAccepted
      ? { ...outcome, providerMessageId: idWithout(mask, outcome.providerMessageId) }
      : { ...outcome, error: { ...outcome.error, message: mask(outcome.error.message) } },
    responseBody: responseBody === null ? null : mask(responseBody),
    ...(responseHeaders !== undefined && {
      responseHeaders: Object.fromEntries(
        Object.entries(responseHeaders).map(([name, value]) => [mask(name, CERTAIN_MIN), mask(value)])
      )
    })
  }
}

/** An id that holds a secret is dropped: many messages would share the rest of it. */
const idWithout = (mask: Mask, id: string | null): string | null =>
  id === null || mask(id, CERTAIN_MIN) !== id ? null : id

/** JSON text without the secrets in its values; the text itself where there are none. */
export const maskedJson = (mask: Mask, text: string): string => {
  const within = (value: unknown): unknown => {
    if (typeof value === "string") return mask(value, CERTAIN_MIN)
    if (typeof value === "number") return mask(String(value), CERTAIN_MIN) === String(value) ? value : MASKED
    if (Array.isArray(value)) return value.map(within)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [mask(name, CERTAIN_MIN), within(one)]))
  }
  return mask(text, CERTAIN_MIN) === text ? text : JSON.stringify(within(JSON.parse(text)))
}

type LookedFor = ReadonlySet<string>

const lookedFor = (
  channel: AnyChannel,
  { destination: { settings }, secrets, previousSecrets }: OpenDestination
): LookedFor => {
  const texts = new Set<string>()
  const add = (text: string, shortest: number) => {
    if (text.length >= shortest) texts.add(text)
    const decoded = decodedOf(text)
    if (decoded === null) return
    if (decoded.length >= shortest) texts.add(decoded)
    // user:password
    const password = decoded.slice(decoded.indexOf(":") + 1)
    if (password.length >= shortest) texts.add(password)
  }
  const named = [
    ...Object.entries(secrets).map(([name, secret]) => ({ name, secret })),
    ...previousSecrets.map(({ name, secret }) => ({ name, secret }))
  ]
  for (const { name, secret } of named) {
    const value = Redacted.value(secret)
    for (const text of [value, ...(channel.secrets[name]?.alsoWritten?.(value) ?? [])]) {
      if (text.includes("\n")) {
        for (const line of text.split("\n")) {
          // Lines of a private key.
          if (line.length >= PERHAPS_MIN && !line.startsWith("-----")) texts.add(line.trim())
        }
      } else add(text, SECRET_MIN)
    }
  }
  const places = channel.placesOf?.(settings) ?? []
  for (const [name, { hides }] of Object.entries(channel.settings as Readonly<Record<string, Setting>>)) {
    if (hides === undefined) continue
    for (const value of Object.values(textsIn((settings as unknown as Readonly<Record<string, unknown>>)[name]))) {
      // Of a URL only the parameters count, below.
      if (hides(value) === value || places.includes(value)) continue
      add(value, PERHAPS_MIN)
      // References to secrets stand for those.
      for (const part of value.split(/\{\{[^{}]*\}\}|[\s,;]+/)) {
        add(part, PERHAPS_MIN)
        add(part.slice(part.indexOf("=") + 1).replace(/^"(.*)"$/, "$1"), PERHAPS_MIN)
      }
    }
  }
  for (const place of places) {
    const url = URL.parse(place)
    for (const pair of url?.search.slice(1).split("&") ?? []) {
      const written = pair.slice(pair.indexOf("=") + 1)
      // A placeholder.
      if (/%7B|\{/i.test(written)) continue
      add(written, PERHAPS_MIN)
    }
    for (const [, value] of url?.searchParams ?? []) if (!value.includes("{")) add(value, PERHAPS_MIN)
  }
  return texts
}

const decodedOf = (text: string): string | null => {
  if (!/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(text)) return null
  const padded = text.replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/")
  if (padded.length % 4 === 1) return null
  const decoded = atob(padded)
  return /^[\x20-\x7e]{6,}$/.test(decoded) ? decoded : null
}

/** One byte a character. */
const bytesOf = (text: string): string => {
  let bytes = ""
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte)
  return bytes
}

/** The base64 of these bytes at each of three offsets, without characters that share bits with their neighbours. */
const encodedIn = (bytes: string): ReadonlyArray<string> =>
  [0, 1, 2].map((before) =>
    btoa("\0".repeat(before) + bytes).slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
  )

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

const percentOf = (text: string): ReadonlyArray<string> => {
  const component = encodeURIComponent(text.toWellFormed())
  const strict = component.replace(/[!'()*]/g, (found) => `%${found.charCodeAt(0).toString(16)}`)
  return [component, component.replaceAll("%20", "+"), strict, new URLSearchParams([["", text]]).toString().slice(1)]
}

const needlesOf = (secret: string): ReadonlyArray<Needle> => {
  const plain = [secret, ...percentOf(secret)]
  // Encoded text may be JSON, and JSON within JSON: that only differs for a secret with quotes.
  const written = [...new Set([secret, inJson(secret), inJson(inJson(secret))])].map(bytesOf)
  const hex = written.map((bytes) =>
    [...bytes].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("")
  )
  const base64 = written.flatMap(encodedIn).filter(({ length }) => length >= ENCODED_MIN)
  return [
    ...[...plain, ...hex].map((text) => ({ text: folded(text).text, isEncoded: false })),
    ...base64
      .flatMap((text) => [text, text.replaceAll("+", "-").replaceAll("/", "_")])
      .map((text) => ({ text: lowerCase(text), isEncoded: true }))
  ]
}

const allNeedlesOf = (texts: LookedFor): ReadonlyArray<Needle> => {
  const byText = new Map([...texts].flatMap(needlesOf).map((needle) => [needle.text, needle]))
  return [...byText.values()].filter(({ text }) => text.length >= SECRET_MIN)
}

/** Of the same length: a few characters have a longer lower case. */
const lowerCase = (text: string): string => {
  const lower = text.toLowerCase()
  return lower.length === text.length ? lower : text.replace(/[A-Z]+/g, (found) => found.toLowerCase())
}

/** Lower case without the escapes of JSON and HTML, however deep they nest. */
interface Folded {
  readonly text: string
  /** The place of each character, and of the end, in the text; absent where they are the same. */
  readonly places?: ReadonlyArray<number>
}

const escaped = /\\+u00([0-7][0-9a-f])|\\|%5c|&(amp|lt|gt|quot|apos|#3[49]|#x2[27]);/g
const entities: Readonly<Record<string, string>> = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" },
  ...{ "#34": '"', "#39": "'", "#x22": '"', "#x27": "'" }
}

const folded = (given: string): Folded => {
  const lower = lowerCase(given)
  if (!/[\\&]|%5c/.test(lower)) return { text: lower }
  let text = ""
  let from = 0
  const places: Array<number> = []
  const take = (characters: string, at: (n: number) => number) => {
    for (let n = 0; n < characters.length; n++) places.push(at(n))
    text += characters
  }
  for (const { 0: found, 1: code, 2: entity, index } of lower.matchAll(escaped)) {
    const start = from
    take(lower.slice(start, index), (n) => start + n)
    if (code !== undefined) take(String.fromCharCode(Number.parseInt(code, 16)).toLowerCase(), () => index)
    else if (entity !== undefined) take(entities[entity]!, () => index)
    from = index + found.length
  }
  const start = from
  take(lower.slice(start), (n) => start + n)
  places.push(given.length)
  return { text, places }
}

/** `to` is exclusive. */
type Stretch = readonly [from: number, to: number]

const base64Codes = new Set(
  [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_%-"].map((one) => one.charCodeAt(0))
)
const isBase64 = (code: number): boolean => base64Codes.has(code)

/**
 * The characters times needles that are searched for one text: an org with many long secrets would hold up the process.
 * Only the beginning of a longer text is kept.
 */
const LOOKED_MAX = 12_000_000

const maskFor = (texts: LookedFor): Mask => {
  // No way to write a secret is shorter than its folded form.
  const shortestOfAll = Math.min(...[...texts].map((text) => folded(text).text.length))
  let needles: ReadonlyArray<Needle> | null = null

  return (given, shortest = 0) => {
    if (given.length < shortestOfAll) return given
    needles ??= allNeedlesOf(texts)
    const text = given.slice(0, Math.floor(LOOKED_MAX / needles.length))
    const { text: said, places } = folded(text)
    const found: Array<Stretch> = []
    for (const needle of needles) {
      const { length } = needle.text
      if (length < shortest) continue
      let at = said.indexOf(needle.text)
      while (at !== -1) {
        const stretch = needle.isEncoded ? around(said, at, at + length) : ([at, at + length] as const)
        found.push(stretch)
        at = said.indexOf(needle.text, stretch[1])
      }
      const cut = text.length < CUT_MIN && text.length === given.length ? -1 : cutAt(said, needle.text)
      if (cut !== -1) found.push([cut, said.length])
    }
    if (found.length === 0) return text
    return without(text, places === undefined ? found : found.map(([from, to]) => [places[from]!, places[to]!]))
  }
}

const around = (text: string, from: number, to: number): Stretch => {
  let [first, last] = [from, to]
  while (first > 0 && isBase64(text.charCodeAt(first - 1))) first -= 1
  while (last < text.length && isBase64(text.charCodeAt(last))) last += 1
  return [first, last]
}

/** Where a text ends with the longest beginning of a secret; -1 where it does not. */
const cutAt = (text: string, secret: string): number => {
  const end = text.slice(Math.max(0, text.length - secret.length + 1))
  if (!end.includes(secret.slice(0, SECRET_MIN))) return -1
  // Knuth, Morris and Pratt: no character is compared twice.
  const borders = new Int32Array(secret.length)
  for (let at = 1, kept = 0; at < secret.length; at++) {
    while (kept > 0 && secret[at] !== secret[kept]) kept = borders[kept - 1]!
    if (secret[at] === secret[kept]) kept += 1
    borders[at] = kept
  }
  let matched = 0
  for (const character of end) {
    while (matched > 0 && character !== secret[matched]) matched = borders[matched - 1]!
    if (character === secret[matched]) matched += 1
  }
  return matched >= SECRET_MIN ? text.length - matched : -1
}

const without = (text: string, found: Array<Stretch>): string => {
  let shown = ""
  let end = 0
  for (const [from, to] of found.toSorted(([a], [b]) => a - b)) {
    if (from >= end) shown += text.slice(end, from) + MASKED
    end = Math.max(end, to)
  }
  return shown + text.slice(end)
}
