/**
 * The one place where a fact meets its stored form. A stored fact is named `Type@version`; adapters
 * keep the name and the JSON text and never look inside either.
 */
import { Result, Schema } from "effect"
import { type MessageFact, recorded } from "./facts.ts"

export interface RecordedFact {
  readonly name: string
  /** JSON text. */
  readonly data: string
}

export class UnreadableFact extends Schema.TaggedError<UnreadableFact>()("UnreadableFact", {
  name: Schema.String,
  message: Schema.String
}) {}

type Name = keyof typeof recorded
const isName = (name: string): name is Name => Object.hasOwn(recorded, name)

const versionOf = (name: string) => Number(name.slice(name.indexOf("@") + 1))

/** The newest name of each type, taken from the list of all shapes. */
const currentName: ReadonlyMap<string, Name> = new Map(
  (Object.keys(recorded) as Array<Name>)
    .toSorted((a, b) => versionOf(a) - versionOf(b))
    .map((name) => [name.slice(0, name.indexOf("@")), name])
)

const codecs = new Map(
  (Object.keys(recorded) as Array<Name>).map((name) => {
    const codec = recorded[name] as unknown as Schema.Codec<MessageFact, Schema.Json>
    return [name, { encode: Schema.encodeSync(codec), decode: Schema.decodeUnknownResult(codec) }] as const
  })
)

/** The name already says the type, so the data does not repeat it. */
export const toRecorded = (fact: MessageFact): RecordedFact => {
  const name = currentName.get(fact.type)!
  return { name, data: encoders[fact.type]?.(fact) ?? encodeBySchema(name, fact) }
}

const encodeBySchema = (name: Name, fact: MessageFact): string => {
  const { type: _, ...data } = codecs.get(name)!.encode(fact) as Record<string, unknown>
  return JSON.stringify(data)
}

/**
 * The facts of a delivery that goes well hold only numbers and strings, so their stored form is
 * themselves. Going through the schema codec cost 4 µs each, on the hot path of every message.
 */
const plain = ({ type: _, ...data }: MessageFact): string => JSON.stringify(data)
const encoders: { readonly [T in MessageFact["type"]]?: (fact: MessageFact) => string } = {
  AttemptStarted: plain,
  AttemptSucceeded: plain,
  MessageDelivered: plain,
  MessageFailed: plain,
  MessageDeadLettered: plain
}

export const fromRecorded = ({ name, data }: RecordedFact): Result.Result<MessageFact, UnreadableFact> => {
  if (!isName(name)) {
    return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
  }
  const stored: unknown = { type: name.slice(0, name.indexOf("@")), ...JSON.parse(data) }
  return codecs
    .get(name)!
    .decode(stored)
    .pipe(Result.mapError((error) => new UnreadableFact({ name, message: String(error) })))
}
