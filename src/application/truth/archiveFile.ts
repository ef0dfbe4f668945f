/**
 * The form of an export, one JSON document a line: a header, a line for each fact in the order of the log, and a last
 * line with their number, which shows a cut. A fact's `data` is the stored text itself, last in its line. The data of a
 * message or event (body, answers, key) stands with its first fact; messages name their event instead of repeating its
 * body.
 */
import { DateTime, Result } from "effect"
import type { EventId } from "../../domain/ids.ts"
import { eventOf, halvesOf, messageOf } from "../../domain/streams.ts"
import type { ArchivedFact } from "../ports/Archive.ts"
import type { UsedKey } from "../ports/EventStore.ts"
import type { DataOfEvent, DataOfMessage } from "../ports/MessageData.ts"

export const FORMAT = 1

export interface Line {
  readonly position: number
  readonly fact: ArchivedFact
  readonly besideFacts: BesideFacts | null
}

export type BesideFacts = DataOfMessage | DataOfEvent

export const isOfMessage = (data: BesideFacts): data is DataOfMessage => "messageId" in data
export const isOfEvent = (data: BesideFacts): data is DataOfEvent => "eventId" in data

export const firstLine = (withBodies: boolean): string =>
  JSON.stringify({ posthaste: "streams", format: FORMAT, bodies: withBodies })

export const lastLine = (facts: number): string => JSON.stringify({ end: true, facts })

export const lineOf = ({ position, fact, besideFacts }: Line): string => {
  const { stream, version, name, at, actor, data, forgettable = null } = fact
  const isInRow = besideFacts !== null && isOfMessage(besideFacts) && besideFacts.queued !== null
  const head = JSON.stringify({
    position,
    stream,
    version,
    name,
    at: DateTime.formatIso(at),
    actor,
    ...(forgettable === null || isInRow ? {} : { forgettable: JSON.parse(forgettable) }),
    ...(besideFacts?.key ? { key: besideFacts.key } : {}),
    ...(besideFacts?.body == null ? {} : { body: besideFacts.body }),
    ...(besideFacts && isOfMessage(besideFacts) ? moreOf(besideFacts) : {})
  })
  // A line break outside of a string is white space to JSON, and inside a string it can't stand.
  return `${head.slice(0, -1)},"data":${data.replaceAll(/[\r\n]/g, " ")}}`
}

const moreOf = ({ queued, bodyOf, responses }: DataOfMessage) => ({
  ...(queued === null ? {} : { queued: JSON.parse(queued) }),
  ...(bodyOf === null ? {} : { bodyOf }),
  ...(responses.length > 0 ? { responses } : {})
})

type Parsed =
  | { readonly type: "First"; readonly bodies: boolean }
  | { readonly type: "Fact"; readonly line: Line }
  | { readonly type: "Last"; readonly facts: number }

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
    ...(fields["forgettable"] === undefined ? {} : { forgettable: JSON.stringify(fields["forgettable"]) }),
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

const besideFactsOf = (stream: string, { queued, key, body, bodyOf, responses }: Fields): BesideFacts | null => {
  if ([queued, key, body, bodyOf, responses].every((each) => each === undefined)) return null
  const both = { key: (key as UsedKey | undefined) ?? null, body: typeof body === "string" ? body : null }
  const eventId = eventOf(stream)
  if (eventId !== null) return { eventId, ...both }
  const messageId = messageOf(stream)
  if (messageId === null) return null
  return {
    messageId,
    ...both,
    queued: queued === undefined ? null : JSON.stringify(queued),
    bodyOf: (bodyOf as EventId | undefined) ?? null,
    responses: (responses as DataOfMessage["responses"] | undefined) ?? []
  }
}
