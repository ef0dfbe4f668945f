/**
 * Adds fields of a target's settings to a message's JSON object. The text stays as it is, digits included; the fields
 * stand at its end, where parsers let them win over duplicates.
 */
type Fields = Readonly<Record<string, string>>

const FIELDS_MAX = 20
const NAME_MAX = 128
const VALUE_MAX = 4096

export const checkFields = (fields: Fields): string | null => {
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

/** Adds to JSON text; null when there are fields and the text is no object. */
export const withFields = (body: string, fields: Fields): string | null => {
  if (Object.keys(fields).length === 0) return body
  const text = body.trim()
  if (!text.startsWith("{") || !text.endsWith("}")) return null
  const isEmpty = text.slice(1, -1).trim() === ""
  return `${text.slice(0, -1)}${isEmpty ? "" : ","}${JSON.stringify(fields).slice(1)}`
}
