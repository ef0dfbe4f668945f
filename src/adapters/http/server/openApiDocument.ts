/**
 * Completes the OpenAPI document that is generated from Api.ts: a summary that fits a list and the whole text as description,
 * fields that say what they are, examples, one schema where the generator made copies, and what generators and linters of
 * documents need. Nobody adds to a route what this can say for it.
 */
import { LIMIT_DEFAULT, LIMIT_MAX } from "./fields.ts"
import { examples, fields, groups } from "./openApiWords.ts"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly pattern?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly prefixItems?: ReadonlyArray<JsonSchema>
  readonly additionalProperties?: JsonSchema | boolean
  readonly properties?: Record<string, JsonSchema>
  readonly required?: ReadonlyArray<string>
  items?: JsonSchema | boolean
  description?: string
  examples?: ReadonlyArray<unknown>
}

interface Parameter {
  readonly name: string
  schema: JsonSchema
  description?: string
}

type Content = Record<string, { schema: JsonSchema; example?: unknown }>

interface Operation {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Record<
    string,
    { description: string; headers?: Record<string, object>; readonly content?: Content }
  >
  summary: string
  description?: string
}

interface Document {
  readonly info: object
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, JsonSchema>
    readonly securitySchemes: Record<string, object>
  }
  readonly tags: ReadonlyArray<{ readonly name: string; description?: string }>
}

export const finish = (generated: Record<string, unknown>): Record<string, unknown> => {
  const document = withoutCopies(generated) as unknown as Document
  const { schemas, securitySchemes } = document.components
  for (const scheme of Object.values(securitySchemes)) Object.assign(scheme, { scheme: "bearer" })
  for (const tag of document.tags) tag.description ??= groups[tag.name] ?? `${tag.name}, their settings and state.`
  for (const schema of Object.values(schemas)) complete(schema)
  for (const [name, example] of Object.entries(examples)) if (schemas[name]) schemas[name].examples = [example]
  const exampleOf = exampleIn(schemas)
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    for (const parameter of operation.parameters ?? []) completeParameter(parameter)
    for (const each of Object.values(operation.requestBody?.content ?? {})) {
      complete(each.schema)
      each.example = exampleOf(each.schema, "", false)
    }
    operation.responses["431"] ??= {
      description: "The headers of the request are larger than 16 KiB",
      content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } }
    }
    const tooMuch = operation.responses["429"]
    if (tooMuch !== undefined) tooMuch.headers = limitHeaders
    for (const { content = {} } of Object.values(operation.responses)) {
      for (const [type, each] of Object.entries(content)) {
        each.schema = withoutRepeats(each.schema)
        complete(each.schema)
        if (type === "application/json") each.example = exampleOf(each.schema, "", true)
      }
    }
  }
  return {
    ...document,
    info: {
      ...document.info,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      contact: { name: "The maintainers of Posthaste" }
    },
    servers: [{ url: "/", description: "The Posthaste that served this document" }]
  }
}

const integerHeader = (required: boolean, description: string) => ({
  description,
  required,
  schema: { type: "integer", minimum: 0 }
})

/** Headers of every refusal for asking too much. */
const limitHeaders = { "Retry-After": integerHeader(true, "After so many seconds it may be worth asking again.") }

/** `Problem_1` is a copy of `Problem`: the generator makes one for each place where it differs in nothing that shows. */
const withoutCopies = (generated: Record<string, unknown>): Record<string, unknown> => {
  const { schemas } = (generated as unknown as Document).components
  const copies = new Map<string, string>()
  for (const [name, schema] of Object.entries(schemas)) {
    const original = /^(.+)_\d+$/.exec(name)?.[1]
    if (original === undefined || schemas[original] === undefined) continue
    if (original === "Problem" || JSON.stringify(schema) === JSON.stringify(schemas[original]))
      copies.set(name, original)
  }
  const text = JSON.stringify(generated).replace(/"#\/components\/schemas\/([^"]+)"/g, (reference, name: string) =>
    copies.has(name) ? `"#/components/schemas/${copies.get(name)}"` : reference
  )
  const document = JSON.parse(text) as Document
  for (const name of copies.keys()) delete document.components.schemas[name]
  return document as unknown as Record<string, unknown>
}

/** Two parts of the API may promise the same answer. */
const withoutRepeats = (schema: JsonSchema): JsonSchema => {
  const variants = [...new Map(schema.anyOf?.map((each) => [JSON.stringify(each), each])).values()]
  return variants.length === 1 ? variants[0]! : schema
}

const completeParameter = (parameter: Parameter): void => {
  if (parameter.name === "limit") {
    parameter.schema = { type: "integer", minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }
  }
  complete(parameter.schema)
  const means = parameter.schema.description ?? fields[parameter.name]?.[0]
  if (means !== undefined) parameter.description ??= means
}

/** Says of each field what it is, and of each array what it holds. */
const complete = (schema: JsonSchema): void => {
  if (schema.type === "array") schema.items ??= schema.prefixItems?.[0] ?? {}
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const means = fields[name]?.[0]
    // A schema that is referred to says itself what it is.
    if (field.$ref === undefined && means !== undefined) field.description ??= means
    complete(field)
  }
  const { items, additionalProperties: others } = schema
  for (const inner of [items, others, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    if (typeof inner === "object") complete(inner)
  }
}

/** A value that fits the schema: whole examples first, then values by the names of fields, then the least that fits. */
const exampleIn = (schemas: Record<string, JsonSchema>) => {
  /** `isWhole` shows fields that may be left out too. */
  const exampleOf = (schema: JsonSchema, name: string, isWhole: boolean): unknown => {
    if (schema.$ref !== undefined) return exampleOf(schemas[schema.$ref.split("/").at(-1)!]!, name, isWhole)
    if (schema.examples !== undefined) return schema.examples[0]
    const known = fields[name]?.[1]
    if (known !== undefined && fits(known, schema)) return known
    if (schema.const !== undefined) return schema.const
    if (schema.enum !== undefined) return schema.enum[0]
    if (schema.default !== undefined) return schema.default
    const variants = schema.anyOf ?? schema.oneOf
    if (variants !== undefined) {
      return exampleOf(variants.find(({ type }) => type !== "null") ?? variants[0]!, name, isWhole)
    }
    switch (schema.type) {
      case "object":
        return objectOf(schema, isWhole)
      case "array":
        if (schema.prefixItems !== undefined) return schema.prefixItems.map((item) => exampleOf(item, name, isWhole))
        return typeof schema.items === "object" ? [exampleOf(schema.items, singular(name), isWhole)] : []
      case "boolean":
        return true
      case "integer":
      case "number":
        return Math.max(schema.minimum ?? 1, 1) <= (schema.maximum ?? 1)
          ? Math.max(schema.minimum ?? 1, 1)
          : schema.minimum
      case "string":
        return schema.format === "date-time" ? fields["at"]![1] : "text"
      case "null":
        return null
      default:
        return schema.allOf === undefined ? {} : exampleOf(schema.allOf[0]!, name, isWhole)
    }
  }
  const objectOf = ({ properties = {}, required = [], additionalProperties }: JsonSchema, isWhole: boolean) => {
    const named = Object.entries(properties)
      .filter(([name]) => isWhole || required.includes(name))
      .map(([name, field]) => [name, exampleOf(field, name, isWhole)])
    if (named.length > 0 || typeof additionalProperties !== "object") return Object.fromEntries(named)
    return { name: exampleOf(additionalProperties, "", isWhole) }
  }
  /** Whether the value may stand where the schema is, as far as its type goes. */
  const fits = (value: unknown, schema: JsonSchema): boolean => {
    if (schema.$ref !== undefined) return fits(value, schemas[schema.$ref.split("/").at(-1)!]!)
    const variants = schema.anyOf ?? schema.oneOf
    if (variants !== undefined) return variants.some((variant) => fits(value, variant))
    if (schema.enum !== undefined) return schema.enum.includes(value)
    switch (schema.type) {
      case undefined:
        return schema.allOf === undefined
      case "null":
        return value === null
      case "array":
        return (
          Array.isArray(value) && value.every((item) => typeof schema.items !== "object" || fits(item, schema.items))
        )
      case "object":
        return isObject(value) && fitsObject(value, schema)
      case "integer":
        return Number.isInteger(value) && (value as number) <= (schema.maximum ?? Number.MAX_SAFE_INTEGER)
      case "string":
        if (schema.format === "date-time") return typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)
        return typeof value === "string" && (schema.pattern === undefined || new RegExp(schema.pattern).test(value))
      default:
        return typeof value === schema.type
    }
  }
  const fitsObject = (value: Record<string, unknown>, schema: JsonSchema): boolean => {
    const { properties = {}, required = [], additionalProperties: others } = schema
    return (
      required.every((name) => name in value) &&
      Object.entries(value).every(([name, inner]) => {
        const field = properties[name] ?? (typeof others === "object" ? others : null)
        return field === null ? others !== false : fits(inner, field)
      })
    )
  }
  return exampleOf
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const singular = (name: string): string => name.replace(/s$/, "")
