/**
 * The log: one line an event on standard output, JSON or text. Errors show name, code and message, never the data
 * they are about.
 */
import { Cause, Effect, Layer, Logger, Record, References } from "effect"
import { type LogSettings, logSettings } from "./config.ts"

const TEXT_MAX = 500
const CAUSES_MAX = 4

/** Removes control and bidi characters, so that an event stays one line and can't control a terminal. */
const plain = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, " ").slice(0, TEXT_MAX)

/** Parsers' errors, and those of servers that refuse a value, quote it. */
const isQuoting = (error: Error): boolean =>
  error instanceof SyntaxError || ("code" in error && typeof error.code === "string" && /^2[23]/.test(error.code))

const wordsOf = (error: unknown, depth = 0): string => {
  if (!(error instanceof Error)) return typeof error === "string" ? plain(error) : typeof error
  const code = "code" in error && typeof error.code === "string" ? ` ${error.code}` : ""
  const name = "_tag" in error && typeof error._tag === "string" ? error._tag : error.name
  const said = isQuoting(error) ? "" : plain(error.message)
  const own = `${name}${code}${said === "" ? "" : `: ${said}`}`
  return error.cause === undefined || depth === CAUSES_MAX ? own : `${own} < ${wordsOf(error.cause, depth + 1)}`
}

/** Without the message, which may quote data. */
const framesOf = (error: unknown): ReadonlyArray<string> =>
  error instanceof Error && error.stack !== undefined
    ? error.stack
        .split("\n")
        .filter((line) => /^\s+at /.test(line))
        .slice(0, 8)
        .map((line) => line.trim())
    : []

interface Event {
  readonly time: string
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly error: string | null
  readonly stack: ReadonlyArray<string>
}

const levels: Readonly<Record<string, string>> = {
  Trace: "debug",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "error"
}

const eventOf = ({ date, logLevel, message, cause, fiber }: Logger.Options<unknown>): Event => {
  const parts = Array.isArray(message) ? (message as ReadonlyArray<unknown>) : [message]
  const texts = parts.filter((part) => typeof part === "string")
  const errors = parts.filter((part) => part instanceof Error)
  const caught = cause.reasons.length > 0 ? [Cause.squash(cause)] : []
  const all = [...errors, ...caught]
  const isBug = cause.reasons.some((reason) => reason._tag === "Die")
  return {
    time: date.toISOString(),
    level: levels[logLevel] ?? "info",
    message: plain(texts.join(" ")),
    fields: Record.map(fiber.getRef(References.CurrentLogAnnotations), (field) =>
      typeof field === "string" ? plain(field) : field
    ),
    error: all.length === 0 ? null : all.map((error) => wordsOf(error)).join("; "),
    stack: logLevel === "Error" || isBug ? all.flatMap(framesOf) : []
  }
}

const json = Logger.make((options) => {
  const { time, level, message, fields, error, stack } = eventOf(options)
  const line = {
    time,
    level,
    message,
    ...fields,
    ...(error === null ? {} : { error }),
    ...(stack.length ? { stack } : {})
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
})

const text = Logger.make((options) => {
  const { time, level, message, fields, error, stack } = eventOf(options)
  const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${plain(String(value))}`)
  const why = error === null ? "" : ` (${error})`
  const where = stack.map((frame) => ` | ${frame}`).join("")
  process.stdout.write(`${time} ${level.toUpperCase().padEnd(5)} ${message}${why}${pairs.join("")}${where}\n`)
})

const minimum = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" } as const

export const layerOf = ({ format, level }: LogSettings) => {
  const asJson = format === null ? !process.stdout.isTTY : format === "json"
  return Layer.merge(Logger.layer([asJson ? json : text]), Layer.succeed(References.MinimumLogLevel, minimum[level]))
}

export const layer = Layer.unwrap(Effect.map(logSettings, layerOf))
