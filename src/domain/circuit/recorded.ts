/** The one place where a fact of a circuit meets its stored form: `Type@version` and JSON text. */
import { Result, Schema } from "effect"
import { type RecordedFact, UnreadableFact } from "../recorded.ts"
import { type CircuitFact, recorded } from "./facts.ts"

type Name = keyof typeof recorded
const isName = (name: string): name is Name => Object.hasOwn(recorded, name)

const codecOf = (name: Name) => recorded[name] as unknown as Schema.Codec<CircuitFact, Schema.Json>
const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

/** Later shapes stand below earlier ones in the list, so the last of a type is the one we write. */
const currentName: ReadonlyMap<string, Name> = new Map(
  (Object.keys(recorded) as Array<Name>).map((name) => [typeOf(name), name])
)

export const toRecorded = (fact: CircuitFact): RecordedFact => {
  const name = currentName.get(fact.type)!
  const { type: _, ...data } = Schema.encodeSync(codecOf(name))(fact) as Record<string, unknown>
  return { name, data: JSON.stringify(data) }
}

export const fromRecorded = ({ name, data }: RecordedFact): Result.Result<CircuitFact, UnreadableFact> => {
  if (!isName(name)) {
    return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
  }
  return Result.try(() => ({ type: typeOf(name), ...JSON.parse(data) }) as unknown).pipe(
    Result.flatMap(Schema.decodeUnknownResult(codecOf(name))),
    Result.mapError((error) => new UnreadableFact({ name, message: String(error) }))
  )
}
