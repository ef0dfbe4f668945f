/**
 * Finds values in JSON text without parsing them, so that a payload is delivered as it was written: digits, escapes,
 * spaces, order of keys. The text must have passed `JSON.parse`. No function recurses and every step moves on, so no
 * text is too deep or blocks it.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Half-open, without the spaces around the value. */
interface Span {
  readonly start: number
  readonly end: number
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

const skipSpace = (text: string, from: number): number => {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** Looks at so many characters one by one before it searches the rest of a string, a hundred times faster. */
const NEAR = 64

/** From the opening quote to behind the closing one, or beyond the text. */
const skipString = (text: string, from: number): number => {
  let at = from + 1
  while (at < text.length) {
    const near = Math.min(at + NEAR, text.length)
    while (at < near) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) return at + 1
      at += code === BACKSLASH ? 2 : 1
    }
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    if (!isEscaped(text, quote, at)) return quote + 1
    at = quote + 1
  }
  return at
}

const isEscaped = (text: string, quote: number, from: number): boolean => {
  let at = quote
  while (at > from && text.charCodeAt(at - 1) === BACKSLASH) at--
  return (quote - at) % 2 === 1
}

/** From the first character of a value to behind its last. */
const skipValue = (text: string, from: number): number => {
  let at = from
  let depth = 0
  do {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = skipString(text, at)
      continue
    }
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth++
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--
    else if (depth === 0) return skipPlain(text, at)
    at++
  } while (depth > 0 && at < text.length)
  return at
}

const skipPlain = (text: string, from: number): number => {
  let at = from
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || isSpace(code)) break
    at++
  }
  return at
}

/** Of two members with one name the last counts, as for `JSON.parse`. */
const memberSpan = (text: string, object: Span, name: string): Span | null => {
  let found: Span | null = null
  let at = skipSpace(text, object.start + 1)
  while (at < text.length && text.charCodeAt(at) !== CLOSE_OBJECT) {
    const nameEnd = skipString(text, at)
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = skipValue(text, start)
    if (isName(text, at, nameEnd, name)) found = { start, end }
    at = skipSpace(text, end)
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1)
  }
  return found
}

const isName = (text: string, start: number, end: number, name: string): boolean => {
  if (end - start === name.length + 2) return text.startsWith(name, start + 1)
  return text.slice(start, end).includes("\\") && JSON.parse(text.slice(start, end)) === name
}

const whole = (text: string): Span => ({ start: skipSpace(text, 0), end: text.length })

const isObject = (text: string, span: Span) => text.charCodeAt(span.start) === OPEN_OBJECT

/** The text of an object's member; null when there is no such object or member. */
export const rawMember = (text: string, name: string): string | null => {
  const span = whole(text)
  const member = isObject(text, span) ? memberSpan(text, span, name) : null
  return member === null ? null : text.slice(member.start, member.end)
}

/** The texts of the items of an object's member. */
export const rawItems = (text: string, name: string): ReadonlyArray<string> => {
  const list = memberSpan(text, whole(text), name)!
  const items: Array<string> = []
  let at = skipSpace(text, list.start + 1)
  while (at < list.end - 1) {
    const end = skipValue(text, at)
    items.push(text.slice(at, end))
    at = skipSpace(text, skipSpace(text, end) + 1)
  }
  return items
}

/** True for nesting deeper than `limit`. The only function for a text that is not parsed. */
export const isDeeperThan = (text: string, limit: number): boolean => {
  let depth = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = skipString(text, at)
      continue
    }
    at++
    if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth++
      if (depth > limit) return true
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--
  }
  return false
}
