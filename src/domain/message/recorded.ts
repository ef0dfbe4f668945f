/**
 * The one place where a fact meets its stored form. A stored fact is named `Type@version`; adapters
 * keep the name and the JSON text and never look inside either.
 */
import { DateTime, Result, Schema } from "effect"
import { type RecordedFact, UnreadableFact } from "../recorded.ts"
import { type FactOf, type MessageFact, type MessageQueued, recorded } from "./facts.ts"

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
 * The three facts of a delivery that goes well are written by hand, for every message: through the schema
 * codec each cost 4 µs, and even asking the schema whether the fact is one, and `JSON.stringify`, 1 µs. Null
 * where a value is not what the fact allows: the schema then says so.
 */
const byHand: { readonly [T in MessageFact["type"]]?: (fact: FactOf<T>) => string | null } = {
  AttemptStarted: ({ epoch, attempt }) => (areInts(epoch, attempt) ? `{"epoch":${epoch},"attempt":${attempt}}` : null),
  AttemptSucceeded: ({ attempt, status, providerMessageId, durationMs }) =>
    areInts(attempt, durationMs) && (status === null || areInts(status))
      ? `{"attempt":${attempt},"status":${status},"providerMessageId":${JSON.stringify(providerMessageId)},"durationMs":${durationMs}}`
      : null,
  MessageDelivered: ({ proof }) => (proof === "response" || proof === "receipt" ? `{"proof":"${proof}"}` : null)
}
const areInts = (...values: ReadonlyArray<number>) => values.every(Number.isSafeInteger)

/**
 * The name already says the type, so the data does not repeat it. A fact that could not be read again
 * is a bug in whoever made it: it throws here, before it is history.
 */
export const toRecorded = (fact: MessageFact): RecordedFact => {
  const name = currentName.get(fact.type)!
  const write = byHand[fact.type] as ((fact: MessageFact) => string | null) | undefined
  return { name, data: write?.(fact) ?? writeBySchema(name, fact) }
}

const writeBySchema = (name: Name, fact: MessageFact): string => {
  const { type: _, ...data } = codecs.get(name)!.encode(fact) as Record<string, unknown>
  return JSON.stringify(data)
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
  const fact = { ...stored }
  return makeTimes(type, fact) && codecs.get(name)!.is(fact) ? (fact as unknown as MessageFact) : null
}

/** Turns the texts that stand for times into times; false, and nothing is changed, when one of them is none. */
const makeTimes = (type: MessageFact["type"], stored: Record<string, unknown>): boolean => {
  const fields = times[type]
  if (fields === undefined) return true
  const made: Record<string, DateTime.Utc> = {}
  for (const field of fields) {
    const value = stored[field]
    if (value === null) continue
    const millis = typeof value === "string" ? Date.parse(value) : Number.NaN
    if (Number.isNaN(millis)) return false
    made[field] = DateTime.makeUnsafe(millis)
  }
  Object.assign(stored, made)
  return true
}

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

/**
 * The first fact of a message that is handed out, its JSON parsed already. In its current shape it is not
 * judged again: it was when it was written, and doing so took half of the time of claiming it. `data` becomes
 * the fact; a copy of it for every message was a tenth of a worker's garbage.
 */
export const queuedOf = (name: string, data: Record<string, unknown>): MessageQueued => {
  if (name !== currentName.get("MessageQueued") || !makeTimes("MessageQueued", data)) {
    return Result.getOrThrow(fromRecorded({ name, data: JSON.stringify(data) })) as MessageQueued
  }
  data["type"] = "MessageQueued"
  return data as unknown as MessageQueued
}

export const fromRecorded = ({ name, data }: RecordedFact): Result.Result<MessageFact, UnreadableFact> => {
  if (!isName(name)) {
    return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
  }
  let stored: Record<string, unknown>
  try {
    stored = { type: typeOf(name), ...JSON.parse(data) }
  } catch (error) {
    return Result.fail(new UnreadableFact({ name, message: String(error) }))
  }
  const current = readCurrent(name, stored)
  return current !== null
    ? Result.succeed(current)
    : codecs
        .get(name)!
        .decode(stored)
        .pipe(Result.mapError((error) => new UnreadableFact({ name, message: String(error) })))
}
