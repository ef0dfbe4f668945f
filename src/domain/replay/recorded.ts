/** Where a fact about a replay meets its stored form: `Type@version` and JSON text. */
import { Result, Schema } from "effect"
import { type RecordedFact, UnreadableFact } from "../recorded.ts"
import { type ReplayFact, recorded } from "./facts.ts"

type Name = keyof typeof recorded
const isName = (name: string): name is Name => Object.hasOwn(recorded, name)

const codecOf = (name: Name) => recorded[name] as unknown as Schema.Codec<ReplayFact, Schema.Json>

/** Each type has one shape so far. */
const nameOf = (fact: ReplayFact): Name => `${fact.type}@1`

export const toRecorded = (fact: ReplayFact): RecordedFact => {
  const name = nameOf(fact)
  const { type: _, ...data } = Schema.encodeSync(codecOf(name))(fact) as Record<string, unknown>
  return { name, data: JSON.stringify(data) }
}

export const fromRecorded = ({ name, data }: RecordedFact): Result.Result<ReplayFact, UnreadableFact> => {
  if (!isName(name)) {
    return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
  }
  return Result.try(
    () => ({ ...(JSON.parse(data) as Record<string, unknown>), type: name.slice(0, name.indexOf("@")) }) as unknown
  ).pipe(
    Result.flatMap(Schema.decodeUnknownResult(codecOf(name))),
    Result.mapError((error) => new UnreadableFact({ name, message: String(error) }))
  )
}
