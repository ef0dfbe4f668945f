/**
 * Facts and their stored form: `Type@version` and JSON text. A store keeps both and reads neither; each kind of stream
 * lists every shape of its facts that was ever written, and has a codec made from that list (facts.ts).
 */
import { Result, Schema, SchemaTransformation, Struct } from "effect"

export const fact = <Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.tag(type), ...fields })

/** The shape of a fact from before some fields were added, and what they are in a fact that was written then. */
export const before = <const Names extends string, Fact extends { readonly type: string }>(
  shape: Schema.Codec<Fact, unknown> & { readonly fields: Schema.Struct.Fields },
  added: { readonly [Name in Names]: Fact[Name & keyof Fact] }
) => {
  const names = Object.keys(added)
  const older = Schema.Struct(Struct.omit(shape.fields, names)) as unknown as Schema.Codec<Fact> & typeof shape
  const lifted = SchemaTransformation.transform<Fact, Fact>({
    decode: (fact) => ({ ...fact, ...added }),
    encode: (fact) => Struct.omit(fact, names as []) as Fact
  })
  return older.pipe(Schema.decodeTo(Schema.toType(shape), lifted))
}

/** The facts of a list of shapes. */
export type FactIn<Recorded extends Readonly<Record<string, { readonly Type: unknown }>>> =
  Recorded[keyof Recorded]["Type"]

export interface RecordedFact {
  readonly name: string
  /** JSON text without the type, which the name holds. */
  readonly data: string
}

export class UnreadableFact extends Schema.TaggedError<UnreadableFact>()("UnreadableFact", {
  name: Schema.String,
  message: Schema.String
}) {}

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

/** Writes and reads facts by the list of all their shapes, keyed by `Type@version`, the newest of a type last. */
export const codecOf = <Fact extends { readonly type: string }>(recorded: Readonly<Record<string, unknown>>) => {
  const shapes = new Map(
    Object.entries(recorded).map(([name, shape]) => {
      const codec = shape as Schema.Codec<Fact, Schema.Json>
      return [name, { encode: Schema.encodeSync(codec), decode: Schema.decodeUnknownResult(codec) }] as const
    })
  )
  const newest = new Map([...shapes.keys()].map((name) => [typeOf(name), name]))
  return {
    /** A fact that could not be read again is a bug in the code that made it: it throws here, before it is stored. */
    toRecorded: (fact: Fact): RecordedFact => {
      const name = newest.get(fact.type)!
      const { type: _, ...data } = shapes.get(name)!.encode(fact) as Record<string, unknown>
      return { name, data: JSON.stringify(data) }
    },
    fromRecorded: ({ name, data }: RecordedFact): Result.Result<Fact, UnreadableFact> => {
      const shape = shapes.get(name)
      if (shape === undefined) {
        return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
      }
      return Result.try(() => ({ type: typeOf(name), ...(JSON.parse(data) as object) }) as unknown).pipe(
        Result.flatMap(shape.decode),
        Result.mapError((error) => new UnreadableFact({ name, message: String(error) }))
      )
    }
  }
}
