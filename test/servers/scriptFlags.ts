/**
 * The flags of a script that people run by hand. What the script can't go by ends it with 2 before it starts anything, in one line that
 * names the flag and what it takes; `--help` prints the comment at the script's head.
 */
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"

interface Flag<Value> {
  /** In words; null for a flag without a value. */
  readonly takes: string | null
  readonly absent: Value
  /** Undefined for what the flag doesn't take. */
  readonly read: (text: string) => Value | undefined
}

type Values<Flags> = { readonly [Name in keyof Flags]: Flags[Name] extends Flag<infer Value> ? Value : never }

export const on: Flag<boolean> = { takes: null, absent: false, read: () => true }

export const text = <const Absent extends string | null>(what: string, absent: Absent): Flag<string | Absent> => ({
  takes: what,
  absent,
  read: (given) => given
})

const numeric =
  (form: RegExp, what: string) =>
  <const Absent extends number | null>(
    absent: Absent,
    [least, most]: readonly [number, number] = [1, 1_000_000_000]
  ): Flag<number | Absent> => ({
    takes: `${what} from ${least} to ${most}`,
    absent,
    read: (given) => {
      const value = Number(given)
      return form.test(given) && value >= least && value <= most ? value : undefined
    }
  })

export const whole = numeric(/^\d+$/, "a whole number")
export const number = numeric(/^\d+(\.\d+)?$/, "a number")

/** Some of these, with commas between them; all where nothing is given. */
export const someOf = <const Name extends string>(
  names: ReadonlyArray<Name>,
  absent = names
): Flag<ReadonlyArray<Name>> => ({
  takes: `some of ${names.join()}`,
  absent,
  read: (given) => {
    const asked = given.split(",")
    return asked.every((name) => names.includes(name as Name)) ? (asked as Array<Name>) : undefined
  }
})

/** What was asked for, or the line that says what is wrong with it. `words`: what may stand without a flag. */
export const readFlags = <const Flags extends Readonly<Record<string, Flag<unknown>>>>(
  flags: Flags,
  args: ReadonlyArray<string>,
  words: ((word: string) => boolean) | null = null
): Values<Flags> | string => {
  const values: Record<string, unknown> = Object.fromEntries(
    Object.entries(flags).map(([name, { absent }]) => [name, absent])
  )
  const known = Object.keys(flags).map((name) => `--${name}`)
  const others = `there ${known.length === 0 ? "are no flags" : known.length === 1 ? `is ${known[0]}` : `are ${known.join(", ")}`}; --help tells more`
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { takes }]) => [name, { type: takes === null ? "boolean" : "string" }])
    ),
    strict: false,
    allowPositionals: true,
    tokens: true
  })
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue
    if (token.kind === "positional") {
      if (words === null || !words(token.value)) return `${JSON.stringify(token.value)} means nothing here: ${others}`
      continue
    }
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    if (flag === undefined) return `${token.rawName} is no flag: ${others}`
    const { takes, read } = flag
    if (takes === null) {
      if (token.value !== undefined) return `${token.rawName} takes no value, not ${JSON.stringify(token.value)}`
    } else if (token.value === undefined || (!token.inlineValue && /^--[a-z]/.test(token.value)))
      return `${token.rawName} takes ${takes}, and nothing was given`
    const value = read(token.value ?? "")
    if (value === undefined) return `${token.rawName} takes ${takes}, not ${JSON.stringify(token.value)}`
    values[token.name] = value
  }
  return values as Values<Flags>
}

/** Of this process. */
export const scriptFlags = <const Flags extends Readonly<Record<string, Flag<unknown>>>>(
  flags: Flags,
  words: ((word: string) => boolean) | null = null
): Values<Flags> => {
  const args = process.argv.slice(2)
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(`${headOf(readFileSync(process.argv[1]!, "utf8"))}\n`)
    process.exit(0)
  }
  const values = readFlags(flags, args, words)
  if (typeof values !== "string") return values
  process.stderr.write(`${values}\n`)
  process.exit(2)
}

const headOf = (source: string): string =>
  source
    .slice(source.indexOf("/**") + 3, source.indexOf("*/"))
    .split("\n")
    .map((line) => line.replace(/^ \* ?/, "").trimEnd())
    .join("\n")
    .trim()
