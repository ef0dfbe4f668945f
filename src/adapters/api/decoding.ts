/**
 * Decodes a request strictly: every wrong, missing or unknown field is named with the reason. No text may hold NUL or
 * half a surrogate pair, which no database stores, unless its schema is `verbatim`. A list or record that is too long
 * is refused before its entries are looked at, and at most `FAULTS_MAX` faults are named.
 */
import { Result, Schema, SchemaAST, SchemaIssue } from "effect"
import type { Fault } from "../../application/ports/errors.ts"
import { REFUSES, type Refuses } from "../../application/ports/fields.ts"

/** Keeps the answer smaller than its request. */
export const FAULTS_MAX = 20

/** The decoding of a value with more places ends at the first fault. */
const PLACES_MAX = 2_000

/** Bounds a record whose schema has no bound, and the unknown fields of a request. */
const ENTRIES_MAX = 1_000

const strictly = { errors: "all", onExcessProperty: "error" } as const
const untilTheFirst = { errors: "first", onExcessProperty: "error" } as const

/** `path`: the place of the decoded value in the request, put before every field's name. */
export type Decode<A> = (value: unknown, path?: string) => Result.Result<A, ReadonlyArray<Fault>>

export const decoderOf = <A>(schema: Schema.ConstraintDecoder<A>): Decode<A> => {
  const decodeAll = Schema.decodeUnknownResult(schema, strictly)
  const decodeFirst = Schema.decodeUnknownResult(schema, untilTheFirst)
  return (value, path = "") => {
    const { places, tooLong } = extentOf(schema.ast, value, path)
    if (tooLong !== null) return Result.fail([tooLong])
    const decode = places > PLACES_MAX ? decodeFirst : decodeAll
    const { faults, judged } = seenIn(schema.ast, value, path)
    const result = Result.mapError(decode(value), (error) => faultsOf(error.issue, path))
    if (faults.length === 0) return result
    const others = Result.isFailure(result) ? result.failure : []
    const isSaid = (field: string) =>
      faults.some((fault) => fault.field === field) || judged.some((place) => isWithin(field, place))
    return Result.fail([...faults, ...others.filter(({ field }) => !isSaid(field))].slice(0, FAULTS_MAX))
  }
}

const isWithin = (field: string, place: string): boolean =>
  place === "" || field === place || field.startsWith(`${place}.`)

const VERBATIM = "verbatim"

/** Annotates a value that is kept and delivered as it was written. */
export const verbatim = { [VERBATIM]: true } as const

interface Seen {
  readonly faults: ReadonlyArray<Fault>
  /** Objects whose one fault says everything. */
  readonly judged: ReadonlyArray<string>
}

/** Texts and names that can't be stored, and fields that contradict each other; at most `FAULTS_MAX`. */
const seenIn = (schema: SchemaAST.AST, value: unknown, path: string): Seen => {
  const found: Array<Fault> = []
  const judged: Array<string> = []
  const look = (given: SchemaAST.AST | undefined, at: unknown, where: string): void => {
    if (found.length >= FAULTS_MAX || given?.annotations?.[VERBATIM] === true) return
    if (typeof at === "string") {
      if (!isHoldable(at)) found.push({ field: where || "body", reason: "must be well-formed text without NUL" })
      return
    }
    if (typeof at !== "object" || at === null) return
    const ast = given === undefined ? undefined : membersOf(given, at)
    if (Array.isArray(at)) {
      const rest = ast !== undefined && SchemaAST.isArrays(ast) ? ast : undefined
      for (const [index, item] of at.entries()) look(rest?.elements[index] ?? rest?.rest[0], item, `${where}[${index}]`)
      return
    }
    const contradictions = (ast?.annotations?.[REFUSES] as Refuses | undefined)?.(at) ?? []
    if (contradictions.length > 0) {
      judged.push(where)
      for (const { field, reason } of contradictions) found.push({ field: fieldName(where, [field]), reason })
      return
    }
    const fields = ast !== undefined && SchemaAST.isObjects(ast) ? ast.propertySignatures : []
    for (const [name, entry] of Object.entries(at)) {
      if (!isHoldable(name)) {
        found.push({ field: where || "body", reason: "must have names of well-formed text without NUL" })
        continue
      }
      look(fields.find((field) => field.name === name)?.type, entry, fieldName(where, [name]))
    }
  }
  look(schema, value, path)
  return { faults: found, judged }
}

const isHoldable = (text: string): boolean => !text.includes("\0") && text.isWellFormed()

/** The schema that looks into a value; of a union, the member that might take it. */
const membersOf = (given: SchemaAST.AST, value: object): SchemaAST.AST => {
  const ast = given.encoding === undefined ? given : SchemaAST.toEncoded(given)
  if (SchemaAST.isSuspend(ast)) return membersOf(ast.thunk(), value)
  if (!SchemaAST.isUnion(ast)) return ast
  const member = ast.types.find((each) => mightTake(each, value))
  return member === undefined ? ast : membersOf(member, value)
}

interface Extent {
  /** Places that the schema looks at; an opaque value counts as one. */
  readonly places: number
  readonly tooLong: Fault | null
}

const onePlace: Extent = { places: 1, tooLong: null }

/** Looks at lengths only. Ends soon after `PLACES_MAX`, or at the first list or record that is too long. */
const extentOf = (given: SchemaAST.AST, value: unknown, path: string): Extent => {
  const ast = given.encoding === undefined ? given : SchemaAST.toEncoded(given)
  if (typeof value !== "object" || value === null) return onePlace
  if (SchemaAST.isSuspend(ast)) return extentOf(ast.thunk(), value, path)
  if (SchemaAST.isUnion(ast)) {
    // Refused only where no member is left that might take it.
    const extents = ast.types.filter((member) => mightTake(member, value)).map((each) => extentOf(each, value, path))
    const places = extents.reduce((sum, each) => sum + each.places, 1)
    return { places, tooLong: extents.every(({ tooLong }) => tooLong !== null) ? (extents[0]?.tooLong ?? null) : null }
  }
  if (SchemaAST.isArrays(ast) && Array.isArray(value)) {
    const most = limitOf(ast, "maxLength")
    if (value.length > most) return refused(path, `must have at most ${most} items, not ${value.length}`)
    const [element] = ast.rest
    return sumOf(value.keys(), value.length, (index) => {
      const member = ast.elements[index] ?? element
      return member === undefined ? onePlace : extentOf(member, value[index], `${path}[${index}]`)
    })
  }
  if (SchemaAST.isObjects(ast) && !Array.isArray(value)) {
    const keys = Object.keys(value)
    const isRecord = ast.indexSignatures.length > 0
    const most = Math.min(limitOf(ast, "maxProperties"), isRecord ? ENTRIES_MAX : Number.POSITIVE_INFINITY)
    if (keys.length > most) return refused(path, `must have at most ${most} entries, not ${keys.length}`)
    if (!isRecord && keys.length > ast.propertySignatures.length + ENTRIES_MAX) {
      const unknown = keys.find((key) => ast.propertySignatures.every(({ name }) => name !== key))!
      return refused(fieldName(path, [unknown]), "is not a field of this request")
    }
    const entries = value as Readonly<Record<string, unknown>>
    const named = ast.propertySignatures.filter(({ name }) => Object.hasOwn(value, name))
    return sumOf(named, keys.length, ({ name, type }) => extentOf(type, entries[String(name)], fieldName(path, [name])))
  }
  return onePlace
}

const refused = (path: string, reason: string): Extent => ({ places: 1, tooLong: { field: path || "body", reason } })

const sumOf = <Entry>(entries: Iterable<Entry>, own: number, extent: (entry: Entry) => Extent): Extent => {
  let places = own + 1
  for (const entry of entries) {
    if (places > PLACES_MAX) break
    const inner = extent(entry)
    if (inner.tooLong !== null) return inner
    places += inner.places
  }
  return { places, tooLong: null }
}

/** A member with a literal is asked only for values that have it. */
const mightTake = (member: SchemaAST.AST, value: object): boolean => {
  const ast = member.encoding === undefined ? member : SchemaAST.toEncoded(member)
  if (SchemaAST.isArrays(ast)) return Array.isArray(value)
  if (!SchemaAST.isObjects(ast)) return SchemaAST.isUnion(ast) || SchemaAST.isSuspend(ast) || SchemaAST.isUnknown(ast)
  return (
    !Array.isArray(value) &&
    ast.propertySignatures.every(
      ({ name, type }) =>
        !SchemaAST.isLiteral(type) || (value as Readonly<Record<PropertyKey, unknown>>)[name] === type.literal
    )
  )
}

const limitOf = ({ checks }: SchemaAST.AST, name: "maxLength" | "maxProperties"): number => {
  const limits = (checks ?? []).map((check) => {
    const representation = check.annotations?.["representation"] as { readonly payload?: unknown } | undefined
    return (representation?.payload as Readonly<Record<string, unknown>> | undefined)?.[name]
  })
  return Math.min(...limits.filter((limit) => typeof limit === "number"), Number.POSITIVE_INFINITY)
}

const describe = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    switch (issue._tag) {
      case "MissingKey":
        return "is required"
      case "UnexpectedKey":
        return "is not a field of this request"
      case "InvalidType":
        // A schema's name means nothing to a caller.
        return SchemaAST.isObjects(issue.ast) ? "must be an object" : sentence(SchemaIssue.defaultLeafHook(issue))
      default:
        return sentence(SchemaIssue.defaultLeafHook(issue))
    }
  },
  checkHook: (issue) => {
    const message = SchemaIssue.defaultCheckHook(issue)
    return message === undefined ? undefined : sentence(message)
  }
})

const sentence = (message: string) =>
  message.replace(/^Expected (?=(array|object))/, "must be an ").replace(/^Expected /, "must be ")

export const faultsOf = (issue: SchemaIssue.Issue, path: string): ReadonlyArray<Fault> =>
  describe(issue)
    .issues.slice(0, FAULTS_MAX)
    .map(({ path: inner, message }) => ({ field: fieldName(path, inner ?? []) || "body", reason: sentence(message) }))

type Segment = PropertyKey | { readonly key: PropertyKey }

const fieldName = (path: string, segments: ReadonlyArray<Segment>): string =>
  segments.reduce<string>((name, segment) => {
    const key = typeof segment === "object" ? segment.key : segment
    if (typeof key === "number") return `${name}[${key}]`
    return name === "" ? String(key) : `${name}.${String(key)}`
  }, path)
