/**
 * JSON text by its meaning: order of members, white space, escapes and spelling of numbers don't count (`1.10` and
 * `11e-1` are one number); of two members with one name the last counts. So a repeated request is known again,
 * whichever language or way in wrote it.
 */
export const canonicalJson = (text: string): string => {
  // TypeScript's types lack the third argument of a reviver.
  const parse = JSON.parse as (
    text: string,
    revive: (key: string, value: unknown, from: { source: string }) => unknown
  ) => unknown
  return written(
    parse(text, (_, value, { source }) => (typeof value === "number" ? new Numeral(canonicalNumber(source)) : value))
  )
}

class Numeral {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const written = (value: unknown): string => {
  if (value instanceof Numeral) return value.text
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${written((value as Record<string, unknown>)[name])}`).join(",")}}`
}

/** Digits without zeros at either end, and a power of ten. */
const canonicalNumber = (source: string): string => {
  const [, sign = "", whole = "", fraction = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    source
  )!
  const digits = `${whole}${fraction}`.replace(/^0+/, "")
  const short = digits.replace(/0+$/, "")
  if (short === "") return "0"
  return `${sign}${short}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - short.length)}`
}

export const sortedEntries = (record: object) => Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
