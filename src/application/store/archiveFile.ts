/**
 * The form of an export, one JSON document a line: a header line, a line for each fact in the order of the log, and a
 * last line with their number, so that a file that was cut off is noticed.
 *
 * A fact's `data` is the stored text itself, last in its line, so that an import reads the same bytes. The data of a
 * message (body, answers, key) stands in the line of its first fact.
 */
import { DateTime, Result } from "effect"
import { halvesOf, messageOf } from "../../domain/streams.ts"
import type { ArchivedFact } from "../ports/Archive.ts"
import type { DataOfMessage } from "../ports/MessageData.ts"

export const FORMAT = 1

export interface Line {
  readonly position: number
  readonly fact: ArchivedFact
  readonly besideFacts: DataOfMessage | null
}

export const firstLine = (withBodies: boolean): string =>
  JSON.stringify({ posthaste: "streams", format: FORMAT, bodies: withBodies })

export const lastLine = (facts: number): string => JSON.stringify({ end: true, facts })

export const lineOf = ({ position, fact, besideFacts }: Line): string => {
  const { stream, version, name, at, actor, data } = fact
  const head = JSON.stringify({
    position,
    stream,
    version,
    name,
    at: DateTime.formatIso(at),
    actor,
    ...(besideFacts?.key ? { key: besideFacts.key } : {}),
    ...(besideFacts?.body == null ? {} : { body: besideFacts.body }),
    ...(besideFacts && besideFacts.responses.length > 0 ? { responses: besideFacts.responses } : {})
  })
  // A line break outside of a string is white space to JSON, and inside a string it can't stand.
  return `${head.slice(0, -1)},"data":${data.replaceAll(/[\r\n]/g, " ")}}`
}

type Parsed =
  | { readonly type: "First"; readonly bodies: boolean }
  | { readonly type: "Fact"; readonly line: Line }
  | { readonly type: "Last"; readonly facts: number }

/** Fails with the fault in words. */
export const parseLine = (text: string): Result.Result<Parsed, string> => {
  const json = Result.try(() => JSON.parse(text) as Fields)
  if (Result.isFailure(json)) return Result.fail("is not JSON")
  const fields = json.success
  if (typeof fields !== "object" || fields === null) return Result.fail("is not a JSON object")
  if (fields["posthaste"] === "streams") {
    return fields["format"] === FORMAT
      ? Result.succeed({ type: "First", bodies: fields["bodies"] === true })
      : Result.fail(`has the format ${String(fields["format"])}, and this release reads format ${FORMAT}`)
  }
  if (fields["end"] === true) return Result.succeed({ type: "Last", facts: Number(fields["facts"]) })
  const { position, stream, version, name, actor } = fields
  const at = typeof fields["at"] === "string" ? Date.parse(fields["at"]) : Number.NaN
  // Inside a string the quotes would be escaped, so the first such text is the field.
  const dataAt = text.indexOf(DATA)
  const isRight = {
    position: Number.isInteger(position),
    stream: typeof stream === "string" && isStreamName(stream),
    version: Number.isInteger(version),
    name: typeof name === "string",
    at: !Number.isNaN(at),
    actor: actor === null || typeof actor === "string",
    data: dataAt !== -1
  }
  const wrong = Object.entries(isRight).find(([, right]) => !right)
  if (wrong !== undefined) return Result.fail(`is not a fact of an export: "${wrong[0]}" is missing or wrong`)
  const fact: ArchivedFact = {
    stream: stream as string,
    version: Number(version),
    name: name as string,
    at: DateTime.makeUnsafe(at),
    actor: actor as string | null,
    data: text.slice(dataAt + DATA.length, text.trimEnd().length - 1)
  }
  return Result.succeed({
    type: "Fact",
    line: { position: Number(position), fact, besideFacts: besideFactsOf(fact.stream, fields) }
  })
}

const DATA = ',"data":'

const isStreamName = (stream: string): boolean => {
  const [kind, id] = halvesOf(stream)
  return /^[a-z]+$/.test(kind) && (kind === "message" ? messageOf(stream) !== null : id !== "")
}

type Fields = Readonly<Record<string, unknown>>

const besideFactsOf = (stream: string, { key, body, responses }: Fields): DataOfMessage | null => {
  const messageId = messageOf(stream)
  if (messageId === null || (key === undefined && body === undefined && responses === undefined)) return null
  return {
    messageId,
    key: (key as DataOfMessage["key"] | undefined) ?? null,
    body: typeof body === "string" ? body : null,
    responses: (responses as DataOfMessage["responses"] | undefined) ?? []
  }
}
