/** Requests with JSON that goes through unread, so that its digits stay. */
import { readFileSync } from "node:fs"
import { Effect, Option } from "effect"
import { rawMember } from "../adapters/api/rawJson.ts"
import { Failed, failed } from "./terminal.ts"

/** `-` is standard input. */
export const readText = (path: string) =>
  Effect.try({
    try: () => readFileSync(path === "-" ? 0 : path, "utf8"),
    catch: (cause) => new Failed({ message: `can't read ${path}: ${(cause as Error).message}` })
  })

const parse = (what: string, json: string) =>
  Effect.try({
    try: () => JSON.parse(json) as unknown,
    catch: (cause) => new Failed({ message: `${what} is not JSON: ${(cause as Error).message}` })
  })

export const rawJson = (what: string, json: string) => Effect.as(parse(what, json), json.trim())

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

interface Written {
  readonly file: Option.Option<string>
  /** The member sent as it was written, its flag, and the flag's value. */
  readonly member: string
  readonly flag: string
  readonly text: Option.Option<string>
}

/** The file's content without the member, and the member's text or null. */
export const writtenRequest = Effect.fnUntraced(function* ({ file, member, flag, text }: Written) {
  const fileText = Option.isSome(file) ? yield* readText(file.value) : "{}"
  const inFile = yield* parse(
    Option.getOrElse(file, () => "it"),
    fileText
  )
  if (!isObject(inFile)) return yield* failed("the file must hold one JSON object, a request")
  const raw = Option.getOrElse(text, () => rawMember(fileText, member))
  const { [member]: _, ...fields } = inFile
  return { fields, raw: raw === null ? null : yield* rawJson(`--${flag}`, raw) }
})

export const requestText = (fields: object, raw: Readonly<Record<string, string>>): string => {
  const members = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return `{${[...members, ...Object.entries(raw).map(([name, json]) => `${JSON.stringify(name)}:${json}`)].join(",")}}`
}
