/**
 * The output of every command: results on standard output, everything else on standard error, so that a pipe gets
 * results only. Colour and progress bars appear only on a terminal.
 */
import { Clock, Console, Effect, Record, Schema } from "effect"
import { TerminalCapabilities } from "effect/cli"

/** The command failed; `message` is the reason in one line. */
export class Failed extends Schema.TaggedError<Failed>()("Failed", { message: Schema.String }) {}
export const failed = (message: string) => Effect.fail(new Failed({ message }))

export const print = (text: string) => Console.log(text)
/** A remark for a person, not part of the result. */
export const note = (text: string) => Console.error(text)
export const printJson = (value: unknown) => print(JSON.stringify(value, null, 2))
/** One document a line, for long or endless results. */
export const printJsonLine = (value: unknown) => print(JSON.stringify(value))

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const
type Paint = (text: string) => string
export type Paints = Readonly<Record<keyof typeof codes, Paint>>

export const paints: Effect.Effect<Paints> = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canColor }) => {
  const paint =
    (code: number): Paint =>
    (text) =>
      canColor ? `\x1b[${code}m${text}\x1b[0m` : text
  return Record.map(codes, paint)
})

export const colourOf = (paint: Paints, status: string): Paint => {
  if (status === "DELIVERED" || status === "SENT" || status === "CLOSED") return paint.green
  return status === "FAILED" || status === "DEAD_LETTER" || status === "OPEN" || status === "HELD"
    ? paint.red
    : paint.yellow
}

/** Columns as wide as their widest cell, two blanks apart. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
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

export interface Bar {
  readonly show: (done: number, total: number, tail?: string) => Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

/** A progress bar; invisible where there is no terminal. */
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

/** The distance of a moment in words, such as `in 90 s`. */
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
