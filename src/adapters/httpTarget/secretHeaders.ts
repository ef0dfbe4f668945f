/**
 * Headers that name secrets. `{{name}}` within a value stands for the secret of that name, so
 * `Bearer {{token}}` can be read by anyone who may see the target, and the token by nobody.
 */
import { Redacted } from "effect"
import type { Secrets } from "../../application/ports/HttpTargets.ts"
import { type Headers, isHeaderValue } from "../net/requestPolicy.ts"

const name = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const reference = /\{\{([A-Za-z][A-Za-z0-9_-]{0,63})\}\}/g

/** Why the headers can't be filled in with secrets of these names; null when they can. */
export const checkReferences = (headers: Headers, names: ReadonlyArray<string>): string | null => {
  for (const [header, text] of Object.entries(headers)) {
    const missing = [...text.matchAll(reference)].map((match) => match[1]!).find((named) => !names.includes(named))
    if (missing !== undefined) return `${header} names the secret ${missing}, which the target does not have`
    if (/\{\{|\}\}/.test(text.replace(reference, ""))) {
      return `${header} holds braces that name no secret; a reference is written {{name}}`
    }
  }
  return null
}

export const checkSecret = (named: string, value: string): string | null => {
  if (!name.test(named)) return "must be named with a letter, then at most 63 letters, digits, dashes or underscores"
  return value !== "" && isHeaderValue(value) ? null : "must be 1 to 4096 characters of printable ASCII"
}

/** Every reference must be known. */
export const filled = (headers: Headers, secrets: Secrets): Headers =>
  Object.fromEntries(
    Object.entries(headers).map(([header, text]) => [
      header,
      // A function, so that a `$` in a secret means nothing.
      text.replace(reference, (_, named: string) => Redacted.value(secrets[named]!))
    ])
  )
