/**
 * The one place where a fact meets its stored form. A stored fact is named `Type@version`; adapters
 * keep the name and the JSON text and never look inside either.
 */
import { DateTime, Option, Result, Schema } from "effect"
import { type RecordedFact, UnreadableFact } from "../recorded.ts"
import { type MessageFact, recorded } from "./facts.ts"

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
    return [
      name,
      { is: Schema.is(codec), encode: Schema.encodeSync(codec), decode: Schema.decodeUnknownResult(codec) }
    ] as const
  })
)

/**
 * The facts of a delivery that goes well hold only numbers and strings, so their stored form is
 * themselves. Going through the schema codec cost 4 µs each, on the hot path of every message;
 * asking the schema whether the fact is one costs 0.2 µs.
 */
const plain: ReadonlySet<MessageFact["type"]> = new Set([
  "AttemptStarted",
  "AttemptSucceeded",
  "MessageDelivered",
  "MessageFailed",
  "MessageDeadLettered"
])

/**
 * The name already says the type, so the data does not repeat it. A fact that could not be read again
 * is a bug in whoever made it: it throws here, before it is history.
 */
export const toRecorded = (fact: MessageFact): RecordedFact => {
  const name = currentName.get(fact.type)!
  const { is, encode } = codecs.get(name)!
  const { type: _, ...data } = plain.has(fact.type) && is(fact) ? fact : (encode(fact) as Record<string, unknown>)
  return { name, data: JSON.stringify(data) }
}

/** Where a fact's current shape holds times. */
const times: { readonly [T in MessageFact["type"]]?: ReadonlyArray<string> } = {
  MessageQueued: ["acceptedAt", "dueAt", "expiresAt"],
  AttemptFailed: ["retryAt"],
  AttemptAbandoned: ["retryAt"],
  AttemptUnresolved: ["reconcileAt"],
  MessageExpired: ["expiresAt"],
  MessageReplayed: ["replayedAt"],
  ReceiptRecorded: ["reportedAt"]
}

/**
 * Nearly every fact read is in the current shape: its times are made here and the schema is only asked
 * whether the result is the fact it claims to be. Decoding through the schema took six times as long, for
 * every message claimed and every fact projected. Anything that does not pass takes the schema's way, which
 * lifts older shapes and says what is wrong.
 */
const readCurrent = (name: Name, stored: Record<string, unknown>): MessageFact | null => {
  const type = stored["type"] as MessageFact["type"]
  if (currentName.get(type) !== name) return null
  const fields = times[type]
  if (fields === undefined) return codecs.get(name)!.is(stored) ? (stored as unknown as MessageFact) : null
  const fact = { ...stored }
  for (const field of fields) {
    const value = stored[field]
    if (value === null) continue
    const time = typeof value === "string" ? DateTime.make(value) : Option.none()
    if (Option.isNone(time)) return null
    fact[field] = DateTime.toUtc(time.value)
  }
  return codecs.get(name)!.is(fact) ? (fact as unknown as MessageFact) : null
}

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

/** A fact whose JSON was parsed by whoever read it. */
export const fromStored = (name: string, data: Record<string, unknown>): Result.Result<MessageFact, UnreadableFact> => {
  if (!isName(name)) {
    return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
  }
  const stored = { type: typeOf(name), ...data }
  const current = readCurrent(name, stored)
  return current !== null
    ? Result.succeed(current)
    : codecs
        .get(name)!
        .decode(stored)
        .pipe(Result.mapError((error) => new UnreadableFact({ name, message: String(error) })))
}

export const fromRecorded = ({ name, data }: RecordedFact): Result.Result<MessageFact, UnreadableFact> => {
  let parsed: Record<string, unknown>
  try {
    parsed = JSON.parse(data)
  } catch (error) {
    return Result.fail(new UnreadableFact({ name, message: String(error) }))
  }
  return fromStored(name, parsed)
}
