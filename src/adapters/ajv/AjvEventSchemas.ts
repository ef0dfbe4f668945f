/**
 * JSON Schema by Ajv for untrusted schemas: each part has a price (tenantSchema.ts), and an event that uses up its
 * budget is refused. Budgets are counts, so a busy machine judges alike. Patterns are RE2's, which are linear.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js"
import { Layer, Result } from "effect"
import { RE2JS } from "re2js"
import { EventSchemas } from "../../application/ports/EventSchemas.ts"
import type { Fault } from "../../application/ports/errors.ts"
import { PRICE, pathOf, pricedSchema } from "./tenantSchema.ts"

/** About 0.1 s. An event has at most 256 KiB. */
const BUDGET = 1_000_000
const BUDGET_FOR_ALL = 20_000
const FAULTS_MAX = 50
const COMPILED_MAX = 300

class TooCostly extends Error {}

/** Of the judgement under way, which is synchronous. */
let left = 0
const spend = (price: number): void => {
  left -= price
  if (left < 0) throw new TooCostly()
}

const membersOf = (data: unknown): number =>
  Array.isArray(data) ? data.length : typeof data === "object" && data !== null ? Object.keys(data).length : 0

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

/** Ajv writes `code` into modules it generates; none is generated here. */
const linear = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
    return {
      toString: () => pattern,
      test: (text: string) => {
        spend(1 + Math.floor(text.length / 50))
        return compiled.matcher(text).find()
      }
    }
  },
  { code: "" }
)

const ajvWith = (allErrors: boolean) => {
  const ajv = new Ajv2020({
    ...{ allErrors, strict: false, validateFormats: false, inlineRefs: false, addUsedSchema: false, logger: false },
    code: { regExp: linear as never }
  })
  ajv.removeKeyword("uniqueItems")
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: (wanted: boolean, data: ReadonlyArray<unknown>) => {
      if (!wanted) return true
      const texts = data.map(textOf)
      spend(Math.floor(texts.reduce((sum, text) => sum + text.length, 0) / 50))
      return new Set(texts).size === data.length
    },
    error: { message: "must NOT have duplicate items" }
  })
  ajv.addKeyword({
    keyword: PRICE,
    // Paid first: a keyword that fails ends its part.
    before: "$ref",
    errors: false,
    validate: ({ once, each }: { readonly once: number; readonly each: number }, data: unknown) => {
      spend(once + each * membersOf(data))
      return true
    }
  })
  return ajv
}

/** Only checks schemas: each compiled one gets an instance of its own, freed with it. */
const meta = ajvWith(true)

interface Compiled {
  readonly fits: ValidateFunction
  readonly judge: () => ValidateFunction
}

const compiledOf = (schema: unknown): Compiled => {
  const { schema: priced } = pricedSchema(schema)
  let all: ValidateFunction | null = null
  return {
    fits: ajvWith(false).compile(priced),
    judge: () => {
      all ??= ajvWith(true).compile(priced)
      return all
    }
  }
}

const run = (validate: ValidateFunction, data: unknown, budget: number): boolean | "too costly" => {
  left = budget
  try {
    return validate(data) as boolean
  } catch (error) {
    if (error instanceof TooCostly || error instanceof RangeError) return "too costly"
    throw error
  }
}

/** Lists the faults of alternatives beside the one of their `anyOf` or `oneOf`. */
const faultsIn = (errors: ReadonlyArray<ErrorObject> | null | undefined, root: string): ReadonlyArray<Fault> =>
  (errors ?? []).slice(0, FAULTS_MAX).map(({ instancePath, message, params }) => {
    const path = pathOf(root, instancePath)
    const { missingProperty, additionalProperty, unevaluatedProperty } = params as Record<string, string | undefined>
    if (missingProperty !== undefined) return { field: `${path}.${missingProperty}`, reason: "is required" }
    const unknown = additionalProperty ?? unevaluatedProperty
    if (unknown !== undefined) return { field: `${path}.${unknown}`, reason: "is not a field of this type of events" }
    return { field: path, reason: message ?? "does not fit" }
  })

const unsupported = (pattern: string): string | null =>
  Result.match(
    Result.try(() => RE2JS.compile(RE2JS.translateRegExp(pattern))),
    { onSuccess: () => null, onFailure: (error) => (error as Error).message.replaceAll(/\s+/g, " ").slice(0, 200) }
  )

/** Patterns that RE2 can't try, at any depth. */
const faultsOfPatterns = (value: unknown, path: string): ReadonlyArray<Fault> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => {
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`
    const patterns =
      name === "pattern" && typeof each === "string"
        ? [each]
        : name === "patternProperties" && typeof each === "object" && each !== null
          ? Object.keys(each)
          : []
    return [
      ...patterns.flatMap((pattern) => {
        const reason = unsupported(pattern)
        return reason === null ? [] : [{ field: at, reason: `is no pattern that RE2 knows: ${reason}` }]
      }),
      ...faultsOfPatterns(each, at)
    ]
  })
}

const faultsOfSchema = (schema: unknown): ReadonlyArray<Fault> => {
  const priced = pricedSchema(schema)
  if (priced.faults.length > 0) return priced.faults
  const patterns = faultsOfPatterns(schema, "schema").slice(0, FAULTS_MAX)
  if (patterns.length > 0) return patterns
  left = BUDGET
  if (meta.validateSchema(schema as object) !== true) return faultsIn(meta.errors, "schema")
  return Result.match(
    Result.try(() => compiledOf(schema)),
    {
      onSuccess: () => [],
      onFailure: (error) => [{ field: "schema", reason: `can't be used: ${(error as Error).message.slice(0, 200)}` }]
    }
  )
}

export const layer = Layer.sync(EventSchemas, () => {
  const compiled = new Map<string, Compiled>()
  const compiledFor = ({ version, text }: { readonly version: string; readonly text: string }): Compiled => {
    const found = compiled.get(version) ?? compiledOf(JSON.parse(text))
    compiled.delete(version)
    compiled.set(version, found)
    if (compiled.size > COMPILED_MAX) compiled.delete(compiled.keys().next().value!)
    return found
  }
  return EventSchemas.of({
    faultsOfSchema,
    faultsOfData: (schema, data) => {
      const { fits, judge } = compiledFor(schema)
      const verdict = run(fits, data, BUDGET)
      if (verdict === true) return []
      if (verdict === "too costly") {
        return [{ field: "data", reason: "can't be judged: by the schema of its type that takes too long" }]
      }
      const first = faultsIn(fits.errors, "data")
      const all = judge()
      return run(all, data, BUDGET_FOR_ALL) === false ? faultsIn(all.errors, "data") : first
    }
  })
})
