/**
 * Headers, and fields of the body, that name secrets. `{{name}}` within a value stands for the secret of that name,
 * so `Bearer {{token}}` can be read by anyone who may see the target, and the token by nobody.
 */
import { Redacted } from "effect"
import type { Secrets } from "../../../application/ports/Destinations.ts"
import { MASKED } from "../../../domain/delivery/exchange.ts"
import { isHeaderValue } from "../net/requestPolicy.ts"

/** Values by the name of their header or field. */
type Texts = Readonly<Record<string, string>>

const name = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const reference = /\{\{([A-Za-z][A-Za-z0-9_-]{0,63})\}\}/g

/** Why the values can't be filled in with secrets of these names; null when they can. */
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

/** Says how a credential is meant, and nothing of it. */
const scheme = /^(?:Basic|Bearer|Token|ApiKey|Key) $/i

/** As anybody may read it: the references, the scheme in front of one, and `***` for all else. */
export const withoutLiterals = (text: string): string =>
  text
    // References are the odd parts.
    .split(/(\{\{[A-Za-z][A-Za-z0-9_-]{0,63}\}\})/)
    .map((part, at, parts) =>
      part === "" || at % 2 === 1 || (at === 0 && parts.length > 1 && scheme.test(part)) ? part : MASKED
    )
    .join("")

/** Every reference must be known. */
export const filled = (texts: Texts, secrets: Secrets): Texts =>
  Object.fromEntries(
    Object.entries(texts).map(([field, text]) => [
      field,
      // A function, so that a `$` in a secret means nothing.
      text.replace(reference, (_, named: string) => Redacted.value(secrets[named]!))
    ])
  )
