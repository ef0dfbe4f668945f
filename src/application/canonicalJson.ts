/**
 * JSON text by its meaning: two texts that say the same become the same text. The order of members, white space, escapes and the
 * spelling of numbers don't count (`1.10`, `1.1` and `11e-1` are one number, of any number of digits); of two members with one name the
 * last counts. So a request that is repeated by another process, language or way in is known again.
 */
export const canonicalJson = (text: string): string => {
  // The types of the compiler know the third argument of a reviver not yet.
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

/** Digits without zeros at either end, and the power of ten that they are multiplied by. */
const canonicalNumber = (source: string): string => {
  const [, sign = "", whole = "", fraction = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    source
  )!
  const digits = `${whole}${fraction}`.replace(/^0+/, "")
  const short = digits.replace(/0+$/, "")
  if (short === "") return "0"
  return `${sign}${short}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - short.length)}`
}
