/**
 * JSON Schema by Ajv, for schemas that nobody has to trust.
 *
 * - Every part of a schema has a price (tenantSchema.ts), every value and every text that a pattern is tried on costs too. Who
 *   has spent the budget is stopped: an event is then refused, because nobody can say whether it fits. Budgets are counts, not
 *   time, so the same event is judged alike on a busy machine.
 * - Patterns are RE2's, which take no longer than their text is long. One with a look-around or a back reference is refused.
 * - Equal items are found by their text, not each by each.
 * - Compiled schemas are kept, the last few hundred that were used.
 *
 * `format` is a note, as the draft says.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js"
import { Layer, Result } from "effect"
import { RE2JS } from "re2js"
import type { Fault } from "../../application/errors.ts"
import { EventSchemas } from "../../application/ports/EventSchemas.ts"
import { PRICE, pathOf, pricedSchema } from "./tenantSchema.ts"

/** A tenth of a second or so. An event has at most 256 KiB. */
const BUDGET = 1_000_000
/** Finding every fault of an event that has many takes memory for each. */
const BUDGET_FOR_ALL = 20_000
const FAULTS_MAX = 50
const COMPILED_MAX = 300

class TooCostly extends Error {}

/** Of the judgement under way: it never waits, so there is one. */
let left = 0
const spend = (price: number): void => {
  left -= price
  if (left < 0) throw new TooCostly()
}

const membersOf = (data: unknown): number =>
  Array.isArray(data) ? data.length : typeof data === "object" && data !== null ? Object.keys(data).length : 0

/** Equal values have equal texts. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

/** Ajv writes `code` into what it generates for use elsewhere; nothing here is. */
const linear = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
    return {
      // Ajv tells patterns apart by this.
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
    // Paid before anything can fail: what fails ends its part.
    before: "$ref",
    errors: false,
    validate: ({ once, each }: { readonly once: number; readonly each: number }, data: unknown) => {
      spend(once + each * membersOf(data))
      return true
    }
  })
  return ajv
}

/** Only to look at schemas: what is compiled has an instance of its own, which goes with it. */
const meta = ajvWith(true)

interface Compiled {
  readonly fits: ValidateFunction
  /** Finds all faults. */
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

/** The data fits, or not, or nobody can say. */
const run = (validate: ValidateFunction, data: unknown, budget: number): boolean | "too costly" => {
  left = budget
  try {
    return validate(data) as boolean
  } catch (error) {
    // A stack that is used up is a cost too.
    if (error instanceof TooCostly || error instanceof RangeError) return "too costly"
    throw error
  }
}

/** Faults of alternatives stand beside the one that says that none of them fits. */
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

/** Patterns that can't be tried in linear time, wherever they stand. */
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
