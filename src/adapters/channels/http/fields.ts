/**
 * Headers and body fields that name secrets: `{{name}}` stands for the secret, so that `Bearer {{token}}` can be shown.
 */
import { Redacted } from "effect"
import type { Secrets } from "../../../application/ports/Destinations.ts"
import { MASKED } from "../../../domain/delivery/exchange.ts"
import { isHeaderValue } from "../net/requestPolicy.ts"

type Texts = Readonly<Record<string, string>>

const name = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const reference = /\{\{([A-Za-z][A-Za-z0-9_-]{0,63})\}\}/g

/** Reason why the references can't be filled in with these secrets; null when they can. */
export const checkReferences = (texts: Texts, names: ReadonlyArray<string>): string | null => {
  for (const [field, text] of Object.entries(texts)) {
    const missing = [...text.matchAll(reference)].map((match) => match[1]!).find((named) => !names.includes(named))
    if (missing !== undefined) return `${field} names the secret ${missing}, which the target does not have`
    if (/\{\{|\}\}/.test(text.replace(reference, ""))) {
      return `${field} holds braces that name no secret; a reference is written {{name}}`
    }
  }
  return null
}

export const checkSecret = (named: string, value: string): string | null => {
  if (!name.test(named)) return "must be named with a letter, then at most 63 letters, digits, dashes or underscores"
  return value !== "" && isHeaderValue(value) ? null : "must be 1 to 4096 characters of printable ASCII"
}

/** Schemes reveal no part of a credential. */
const scheme = /^(?:Basic|Bearer|Token|ApiKey|Key) $/i

/** Text that may be shown: references, the scheme before one, and `***` for the rest. */
export const withoutLiterals = (text: string): string =>
  text
    // References are the odd parts.
    .split(/(\{\{[A-Za-z][A-Za-z0-9_-]{0,63}\}\})/)
    .map((part, at, parts) =>
      part === "" || at % 2 === 1 || (at === 0 && parts.length > 1 && scheme.test(part)) ? part : MASKED
    )
    .join("")

export const filled = (texts: Texts, secrets: Secrets): Texts =>
  Object.fromEntries(
    Object.entries(texts).map(([field, text]) => [
      field,
      // A function, so that `$` in a secret has no meaning.
      text.replace(reference, (_, named: string) => Redacted.value(secrets[named]!))
    ])
  )

const FIELDS_MAX = 20
const NAME_MAX = 128
const VALUE_MAX = 4096

export const checkFields = (fields: Texts): string | null => {
  const entries = Object.entries(fields)
  if (entries.length > FIELDS_MAX) return `at most ${FIELDS_MAX} fields`
  for (const [name, text] of entries) {
    if (name === "" || name.length > NAME_MAX) return `a field's name has 1 to ${NAME_MAX} characters`
    if (text.length > VALUE_MAX) return `the value of ${name} is longer than ${VALUE_MAX} characters`
    // Neither PostgreSQL nor JSON parsers can hold these.
    if (!`${name}${text}`.isWellFormed() || `${name}${text}`.includes("\u0000"))
      return `${name} holds a broken character`
  }
  return null
}

/**
 * Adds fields at the end of JSON text, where parsers let them win over duplicates; digits stay as they are. Null when
 * there are fields and the text is no object.
 */
export const withFields = (body: string, fields: Texts): string | null => {
  if (Object.keys(fields).length === 0) return body
  const text = body.trim()
  if (!text.startsWith("{") || !text.endsWith("}")) return null
  const isEmpty = text.slice(1, -1).trim() === ""
  return `${text.slice(0, -1)}${isEmpty ? "" : ","}${JSON.stringify(fields).slice(1)}`
}
