/**
 * Makes a tenant's schema fit to be compiled: small, the price of each part written into it, references only to its own
 * parts and without cycles. Anchors and ids are refused, as they could name a part without a price.
 */
import type { Fault } from "../../application/ports/errors.ts"

const PARTS_MAX = 1_000
const FAULTS_MAX = 20

export const PRICE = "x-posthaste-price"

type Part = Record<string, unknown>

const one = ["additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames"]
const rest = ["unevaluatedItems", "unevaluatedProperties", "contentSchema"]
const several = ["allOf", "anyOf", "oneOf", "prefixItems"]
const named = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]
/** Keywords whose subschemas judge the same data, not its members. */
const inPlace = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"])
const leftOut = ["$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"]

const DRAFT = "https://json-schema.org/draft/2020-12/schema"

const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null && !Array.isArray(value)

const escaped = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1")

interface Child {
  readonly pointer: string
  readonly value: unknown
  readonly inPlace: boolean
}

const childrenOf = (part: Part, pointer: string): ReadonlyArray<Child> =>
  Object.entries(part).flatMap(([keyword, value]) => {
    const at = `${pointer}/${escaped(keyword)}`
    const child = (name: string, each: unknown) => ({
      pointer: `${at}/${escaped(name)}`,
      value: each,
      inPlace: inPlace.has(keyword)
    })
    if (one.includes(keyword) || rest.includes(keyword)) return [{ pointer: at, value, inPlace: inPlace.has(keyword) }]
    if (several.includes(keyword) && Array.isArray(value)) return value.map((each, n) => child(String(n), each))
    if (named.includes(keyword) && isPart(value)) return Object.entries(value).map(([name, each]) => child(name, each))
    return []
  })

/** Path of a place as requests name it: `schema.properties.total.type`. */
export const pathOf = (root: string, pointer: string): string =>
  pointer
    .split("/")
    .slice(1)
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, segment) => (/^\d+$/.test(segment) ? `${path}[${segment}]` : `${path}.${segment}`), root)

export const pricedSchema = (schema: unknown): { readonly schema: Part; readonly faults: ReadonlyArray<Fault> } => {
  const faults: Array<Fault> = []
  const refuse = (pointer: string, reason: string) => faults.push({ field: pathOf("schema", pointer), reason })
  if (!isPart(schema)) return { schema: {}, faults: [{ field: "schema", reason: "must be an object" }] }
  const copy = structuredClone(schema)
  const { $schema: draft, $id: _, ...root } = copy
  if (draft !== undefined && draft !== DRAFT) refuse("/$schema", `must be ${DRAFT}, or left out`)

  const parts = new Map<string, Part>()
  const left: Array<Child> = [{ pointer: "", value: root, inPlace: false }]
  const steps = new Map<string, Array<string>>()
  const alternatives = new Set<string>()
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { pointer, value } = next
    if (!isPart(value)) continue
    parts.set(pointer, value)
    if (parts.size > PARTS_MAX) {
      return { schema: {}, faults: [{ field: "schema", reason: `must have at most ${PARTS_MAX} parts` }] }
    }
    for (const keyword of [...leftOut, ...(pointer === "" ? [] : ["$id", "$schema"])]) {
      if (keyword in value)
        refuse(`${pointer}/${keyword}`, "is not supported: refer to a part of this schema with $ref")
    }
    const children = childrenOf(value, pointer)
    steps.set(
      pointer,
      children.filter((child) => child.inPlace).map((child) => child.pointer)
    )
    left.push(...children)
    for (const child of children) if (/\/(any|one)Of\/\d+$/.test(child.pointer)) alternatives.add(child.pointer)
  }
  for (const [pointer, part] of parts) {
    const { $ref: ref } = part
    if (ref !== undefined) {
      const target = typeof ref === "string" && ref.startsWith("#") ? decoded(ref.slice(1)) : null
      if (target === null || !parts.has(target)) {
        refuse(`${pointer}/$ref`, "must lead to a part of this schema, such as #/$defs/price")
      } else steps.get(pointer)!.push(target)
    }
    part[PRICE] = priceOf(part, alternatives.has(pointer))
  }
  const circle = circleIn(steps)
  if (circle !== null) refuse(`${circle}/$ref`, "must not lead back here without going deeper into the data")
  return { schema: root, faults: faults.slice(0, FAULTS_MAX) }
}

const decoded = (pointer: string): string | null => {
  try {
    return decodeURIComponent(pointer)
  } catch {
    return null
  }
}

/**
 * Counts the comparisons with each value, and the names matched with each member. A failed alternative adds an error.
 */
const priceOf = (part: Part, isAlternative: boolean) => ({
  once:
    (isAlternative ? 20 : 1) + Math.floor(JSON.stringify([part["enum"], part["const"], part["required"]]).length / 100),
  each: 1 + Math.floor(Object.keys((part["properties"] ?? {}) as object).length / 20)
})

const circleIn = (steps: ReadonlyMap<string, ReadonlyArray<string>>): string | null => {
  const done = new Set<string>()
  for (const start of steps.keys()) {
    const way: Array<{ readonly at: string; next: number }> = [{ at: start, next: 0 }]
    const on = new Set([start])
    while (way.length > 0) {
      const place = way.at(-1)!
      const to = steps.get(place.at)?.[place.next++]
      if (to === undefined) {
        way.pop()
        on.delete(place.at)
        done.add(place.at)
      } else if (on.has(to)) return place.at
      else if (!done.has(to)) {
        way.push({ at: to, next: 0 })
        on.add(to)
      }
    }
  }
  return null
}
