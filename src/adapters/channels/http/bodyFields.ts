/**
 * Fields that a target's settings add to a message's JSON object on its way out. The text of the message stays as
 * it is, digits included; the fields stand at its end, where a parser that meets a name twice believes them.
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
    // What a database and a receiver's parser can't hold.
    if (!`${name}${text}`.isWellFormed() || `${name}${text}`.includes("\u0000"))
      return `${name} holds a broken character`
  }
  return null
}

/** `body` is JSON text. Null when there are fields and it is no object. */
export const withFields = (body: string, fields: Fields): string | null => {
  if (Object.keys(fields).length === 0) return body
  const text = body.trim()
  if (!text.startsWith("{") || !text.endsWith("}")) return null
  const isEmpty = text.slice(1, -1).trim() === ""
  return `${text.slice(0, -1)}${isEmpty ? "" : ","}${JSON.stringify(fields).slice(1)}`
}
