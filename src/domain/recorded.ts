/**
 * Facts and their stored form: `Type@1` and JSON text in two parts. The kept part stays for ever; the forgettable part
 * is all that can name a person, stands beside the facts and can be erased. A fact without it reads as erased.
 */
import { Result, Schema } from "effect"
import { isUuid } from "./ids.ts"

export const ERASED = "erased"

/**
 * The forgettable fields of a shape, each with its value once erased; undefined: absent then. A dot leads into a field
 * of a field. `to` is kept where it is the id of a destination.
 */
export type Forgettable = Readonly<Record<string, unknown>>

export const fact = <Type extends string, Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields,
  forgettable: Forgettable = {}
) => Object.assign(Schema.Struct({ type: Schema.tag(type), ...fields }), { forgettable })

export type FactIn<Recorded extends Readonly<Record<string, { readonly Type: unknown }>>> =
  Recorded[keyof Recorded]["Type"]

export interface RecordedFact {
  readonly name: string
  readonly data: string
  /** JSON text of the forgettable part; null or absent where it is empty, erased or not read. */
  readonly forgettable?: string | null
}

export class UnreadableFact extends Schema.TaggedError<UnreadableFact>()("UnreadableFact", {
  name: Schema.String,
  message: Schema.String
}) {}

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

/** An actor `amqp:<key of the command>` can name a person by its key. */
export const keptActor = (actor: string | null): string | null => (actor?.startsWith("amqp:") ? "amqp" : actor)

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const holderOf = (fields: Json, path: string): readonly [Json, string] | null => {
  const names = path.split(".")
  let holder = fields
  for (const name of names.slice(0, -1)) {
    const next = holder[name]
    if (!isObject(next)) return null
    holder = next
  }
  return [holder, names.at(-1)!]
}

/** Moves the forgettable fields out of `data`, whose objects may be shared; null where there are none. */
const takeOut = (data: Json, forgettable: Forgettable): Json | null => {
  let taken: Json | null = null
  for (const path of Object.keys(forgettable)) {
    const [found, name] = holderOf(data, path) ?? []
    if (found === undefined || name === undefined || !(name in found)) continue
    const value = found[name]
    if (name === "to" && isUuid(String(value))) continue
    const into: Json = {}
    let [holder, part] = [data, into]
    for (const parent of path.split(".").slice(0, -1)) {
      holder = holder[parent] = { ...(holder[parent] as Json) }
      part = part[parent] = {} as Json
    }
    delete holder[name]
    // A selection without a field would select more.
    if (path.startsWith("selection.")) holder[name] = forgettable[path]
    if (value == null) continue
    part[name] = value
    taken = merged(taken ?? {}, into)
  }
  return taken
}

/** `part` wins where both have a field. */
const merged = (whole: Json, part: Json): Json => {
  for (const [name, value] of Object.entries(part)) {
    const said = whole[name]
    whole[name] = isObject(said) && isObject(value) ? merged({ ...said }, value) : value
  }
  return whole
}

/** Fills in the erased values of missing fields. */
export const fillErased = (data: Json, forgettable: Forgettable): Json => {
  for (const [path, erased] of Object.entries(forgettable)) {
    if (erased === undefined) continue
    const [holder, name] = holderOf(data, path) ?? []
    if (holder !== undefined && name !== undefined && holder[name] === undefined && !path.startsWith("selection.")) {
      holder[name] = erased
    }
  }
  return data
}

type Parts = Omit<RecordedFact, "name">

export const partsOf = ({ data, forgettable = null }: Parts): Json =>
  forgettable === null ? (JSON.parse(data) as Json) : merged(JSON.parse(data) as Json, JSON.parse(forgettable) as Json)

export const wholeOf = (parts: Parts): string =>
  parts.forgettable == null ? parts.data : JSON.stringify(partsOf(parts))

interface Shape {
  readonly forgettable: Forgettable
}

export const codecOf = <Fact extends { readonly type: string }>(recorded: Readonly<Record<string, Shape>>) => {
  const shapes = new Map(
    Object.entries(recorded).map(([name, shape]) => {
      const codec = shape as unknown as Schema.Codec<Fact, Schema.Json>
      const { forgettable } = shape
      return [
        name,
        { encode: Schema.encodeSync(codec), decode: Schema.decodeUnknownResult(codec), forgettable }
      ] as const
    })
  )
  const names = new Map([...shapes.keys()].map((name) => [typeOf(name), name]))
  return {
    /** A fact that could not be read again is a bug in its maker: it throws here, before it is stored. */
    toRecorded: (fact: Fact): RecordedFact => {
      const name = names.get(fact.type)!
      const shape = shapes.get(name)!
      const { type: _, ...data } = shape.encode(fact) as Json
      const taken = takeOut(data, shape.forgettable)
      return { name, data: JSON.stringify(data), forgettable: taken === null ? null : JSON.stringify(taken) }
    },
    fromRecorded: ({ name, data, forgettable = null }: RecordedFact): Result.Result<Fact, UnreadableFact> => {
      const shape = shapes.get(name)
      if (shape === undefined) {
        return Result.fail(new UnreadableFact({ name, message: "no release of Posthaste ever wrote this fact" }))
      }
      return Result.try((): unknown => {
        const kept: unknown = JSON.parse(data)
        if (!isObject(kept)) return kept
        const whole = forgettable === null ? kept : merged(kept, JSON.parse(forgettable) as Json)
        return { type: typeOf(name), ...fillErased(whole, shape.forgettable) }
      }).pipe(
        Result.flatMap(shape.decode),
        Result.mapError((error) => new UnreadableFact({ name, message: String(error) }))
      )
    }
  }
}
