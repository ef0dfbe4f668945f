/**
 * The output of every command: results on standard output, all else on standard error; colours and bars on a terminal
 * only. Text of strangers (answers, names, ids) is printed with control characters (C0, C1, changes of direction) as
 * escapes, so that it moves no cursor and hides no line.
 */
import { randomBytes } from "node:crypto"
import { Clock, Console, Effect, Record, Schema } from "effect"
import { TerminalCapabilities } from "effect/cli"

/** The command failed; `message` is one line. */
export class Failed extends Schema.TaggedError<Failed>()("Failed", { message: Schema.String }) {}
export const failed = (message: string) => Effect.fail(new Failed({ message }))

/** Begins a control sequence of ours; random, so that no stranger's text has it. */
const OURS = `\x1b${randomBytes(8).toString("hex")}`

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const unprintable = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escapeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

export const inLine = (text: string): string =>
  text
    .split(OURS)
    .map((part) => part.replace(unprintable, escapeOf))
    .join(OURS)

/** Escapes control characters, all but line breaks. */
export const printable = (text: string): string => text.split("\n").map(inLine).join("\n").replaceAll(OURS, "\x1b")

export const print = (text: string) => Console.log(printable(text))
export const note = (text: string) => Console.error(printable(text))
/** Prints byte for byte, except to a terminal. */
export const printExactly = (text: string) => (process.stdout.isTTY ? print(text) : Console.log(text))
export const clearScreen = `${OURS}[2J${OURS}[H`
export const printJson = (value: unknown) => print(JSON.stringify(value, null, 2))
export const printJsonLine = (value: unknown) => print(JSON.stringify(value))

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const
type Paint = (text: string) => string
export type Paints = Readonly<Record<keyof typeof codes, Paint>>

export const paints: Effect.Effect<Paints> = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canColor }) => {
  const paint =
    (code: number): Paint =>
    (text) =>
      canColor ? `${OURS}[${code}m${text}${OURS}[0m` : text
  return Record.map(codes, paint)
})

export const colourOf = (paint: Paints, status: string): Paint => {
  if (status === "DELIVERED" || status === "SENT" || status === "CLOSED") return paint.green
  return status === "FAILED" || status === "DEAD_LETTER" || status === "OPEN" || status === "HELD"
    ? paint.red
    : paint.yellow
}

/** Aligns columns, two blanks apart. */
export const table = (given: ReadonlyArray<ReadonlyArray<string>>): string => {
  const rows = given.map((row) => row.map(inLine))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

export const grouped = (count: number): string => count.toLocaleString("en-US")

const BAR_CELLS = 30
const EVERY_MS = 200

interface Bar {
  readonly show: (done: number, total: number, tail?: string) => Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

/** A progress bar, on a terminal only. */
export const bar = (what: string): Effect.Effect<Bar> =>
  Effect.gen(function* () {
    const { canAnimate } = yield* TerminalCapabilities.TerminalCapabilities
    if (!canAnimate) return { show: () => Effect.void, end: Effect.void }
    const write = (text: string) => Effect.sync(() => void process.stderr.write(text))
    const begun = yield* Clock.currentTimeMillis
    let shownAt = 0
    return {
      show: Effect.fnUntraced(function* (done, total, tail = "") {
        const now = yield* Clock.currentTimeMillis
        if (now - shownAt < EVERY_MS && done < total) return
        shownAt = now
        const share = total === 0 ? 1 : Math.min(1, done / total)
        const cells = Math.round(share * BAR_CELLS)
        const rate = done / Math.max((now - begun) / 1000, 0.001)
        yield* write(
          `\r\x1b[2K${what} ${"█".repeat(cells)}${"░".repeat(BAR_CELLS - cells)} ${Math.floor(share * 100)} %  ` +
            `${grouped(done)} of ${grouped(total)}  ${grouped(Math.round(rate))}/s${tail === "" ? "" : `  ${tail}`}`
        )
      }),
      end: write("\r\x1b[2K")
    } satisfies Bar
  })

/** Such as `in 90 s`. */
export const distance = (ms: number): string => {
  const seconds = Math.abs(ms) / 1000
  if (seconds < 1) return `${Math.round(Math.abs(ms))} ms`
  if (seconds < 120) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}

export const fromNow = (iso: string, now: number): string => {
  const ms = Date.parse(iso) - now
  return ms >= 0 ? `in ${distance(ms)}` : `${distance(ms)} ago`
}
