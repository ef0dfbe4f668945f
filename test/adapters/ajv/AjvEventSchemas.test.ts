import { Context, Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import * as AjvEventSchemas from "../../../src/adapters/ajv/AjvEventSchemas.ts"
import { EventSchemas } from "../../../src/application/ports/EventSchemas.ts"

const { faultsOfSchema, faultsOfData } = Effect.runSync(
  Effect.scoped(Effect.map(Layer.build(AjvEventSchemas.layer), Context.get(EventSchemas)))
)
const fieldsOf = (schema: unknown) => faultsOfSchema(schema).map(({ field }) => field)
let versions = 0
const judged = (schema: object, data: unknown) => {
  expect(faultsOfSchema(schema)).toEqual([])
  return faultsOfData({ version: String(versions++), text: JSON.stringify(schema) }, data)
}

describe("a schema that can't be used", () => {
  it.each([
    ["a type that is none", { type: "strin" }, "schema.type"],
    ["a limit that is no number", { properties: { a: { minimum: "x" } } }, "schema.properties.a.minimum"],
    ["a list for a map", { properties: [] }, "schema.properties"],
    ["another draft", { $schema: "http://json-schema.org/draft-07/schema#" }, "schema.$schema"],
    ["a reference to elsewhere", { $ref: "https://evil.example/schema.json" }, "schema.$ref"],
    ["a reference to a file", { items: { $ref: "file:///etc/passwd" } }, "schema.items.$ref"],
    ["a reference to nothing", { $ref: "#/$defs/none" }, "schema.$ref"],
    ["a reference to what is no part", { "x-part": { type: "object" }, $ref: "#/x-part" }, "schema.$ref"],
    ["an anchor", { $defs: { a: { $anchor: "a" } } }, "schema.$defs.a.$anchor"],
    ["a dynamic reference", { $dynamicRef: "#a" }, "schema.$dynamicRef"],
    ["an id of a part", { $defs: { a: { $id: "https://x.example/a" } } }, "schema.$defs.a.$id"],
    ["a back reference", { pattern: "(a)\\1" }, "schema.pattern"],
    ["a look-ahead", { patternProperties: { "^(?=a)": true } }, "schema.patternProperties"],
    ["a part that leads back to itself", { $defs: { a: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" }, null],
    [
      "a longer way back",
      { $defs: { a: { anyOf: [{ $ref: "#/$defs/b" }] }, b: { not: { $ref: "#/$defs/a" } } }, $ref: "#/$defs/a" },
      null
    ],
    ["too many parts", { allOf: Array.from({ length: 1_001 }, () => ({ type: "object" })) }, "schema"],
    ["a list", [], "schema"]
  ] as const)("names its place: %s", (_, schema, field) => {
    const fields = fieldsOf(schema)
    expect(fields.length).toBeGreaterThan(0)
    if (field !== null) expect(fields).toContain(field)
  })
})

describe("data", () => {
  const order = {
    type: "object",
    properties: {
      id: { type: "string", pattern: "^[0-9]+$" },
      items: { type: "array", minItems: 1, items: { $ref: "#/$defs/item" }, uniqueItems: true }
    },
    required: ["id", "items"],
    additionalProperties: false,
    $defs: { item: { type: "object", properties: { price: { type: "number", minimum: 0 } }, required: ["price"] } }
  }

  it("that fits has no faults", () => {
    expect(judged(order, { id: "17", items: [{ price: 1.1 }, { price: 2 }] })).toEqual([])
  })

  it("that does not fit is told the path of each fault", () => {
    const faults = judged(order, { id: "x", items: [{ price: -1 }, {}], more: 1 })
    expect(faults.map(({ field }) => field).toSorted()).toEqual([
      "data.id",
      "data.items[0].price",
      "data.items[1].price",
      "data.more"
    ])
    expect(faults.find(({ field }) => field === "data.items[1].price")).toMatchObject({ reason: "is required" })
    expect(judged(order, 1)).toEqual([{ field: "data", reason: "must be object" }])
  })

  it("has equal items only where they may be, whatever the order of their fields", () => {
    const unique = { uniqueItems: true }
    expect(
      judged(unique, [
        { a: 1, b: [2] },
        { b: [2], a: 1 }
      ])
    ).toHaveLength(1)
    expect(judged(unique, [1, "1", true, null, [1], { a: 1 }])).toEqual([])
    expect(judged({ uniqueItems: false }, [1, 1])).toEqual([])
  })

  it("may be as deep as its schema refers to itself", () => {
    const tree = { $ref: "#/$defs/node", $defs: { node: { properties: { next: { $ref: "#/$defs/node" } } } } }
    expect(judged(tree, { next: { next: { next: {} } } })).toEqual([])
  })

  it("is judged by the later definition of its type, and by the same text once", () => {
    const faults = (version: string, type: string) => faultsOfData({ version, text: JSON.stringify({ type }) }, 1)
    expect(faults("t 1", "string")).toHaveLength(1)
    expect(faults("t 2", "number")).toEqual([])
  })
})

/** Each of these would keep a judge busy for minutes or for ever; here it ends, and says so. */
describe("a hostile schema", () => {
  const doubling = (more: object) => {
    const levels = 40
    const $defs: Record<string, object> = { [`d${levels}`]: { const: "nothing", ...more } }
    for (let n = 0; n < levels; n++) {
      const next = { $ref: `#/$defs/d${n + 1}`, ...more }
      $defs[`d${n}`] = { anyOf: [next, next], ...more }
    }
    return { $defs, $ref: "#/$defs/d0" }
  }

  const costly = [{ field: "data", reason: expect.stringContaining("can't be judged") }]

  it("can't make a pattern slow", () => {
    expect(judged({ pattern: "^(a+)+$" }, `${"a".repeat(100_000)}!`)).toMatchObject([{ field: "data" }])
  })

  it("can't make a doubling of alternatives slow", () => {
    expect(judged(doubling({}), 1)).toEqual(costly)
  })

  it("can't make a doubling with the depth of the data slow", () => {
    const down = { properties: { a: { $ref: "#/$defs/n" } }, required: ["a"] }
    let data: object = {}
    for (let n = 0; n < 90; n++) data = { a: data }
    expect(judged({ $defs: { n: { anyOf: [down, down] } }, $ref: "#/$defs/n" }, data)).toEqual(costly)
  })

  it("can't make equal items slow", () => {
    expect(
      judged(
        { uniqueItems: true },
        Array.from({ length: 60_000 }, (_, n) => ({ n }))
      )
    ).toEqual([])
  })

  it("can't make long lists of values slow", () => {
    const values = Array.from({ length: 10_000 }, (_, n) => n)
    const data = Array.from({ length: 100_000 }, () => -1)
    expect(judged({ items: { enum: values } }, data)).not.toEqual([])
    const each = { not: { enum: values } }
    expect(judged({ items: { allOf: [each, each, each] } }, data)).toEqual(costly)
  })

  it("can't make names slow", () => {
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, 1]))
    const patterns = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`^x${n}`, true]))
    expect(judged({ patternProperties: patterns }, data)).toEqual(costly)
    const properties = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`p${n}`, true]))
    expect(judged({ properties, additionalProperties: false }, data)).not.toEqual([])
  })

  it("can't set its own price", () => {
    expect(judged(doubling({ "x-posthaste-price": { once: -1e9, each: -1 } }), 1)).toEqual(costly)
  })

  it("can't reach the names that objects have by themselves", () => {
    const data = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 1}')
    const schema = JSON.parse('{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "string"}}}')
    expect(judged(schema, data).map(({ field }) => field)).toContain("data.constructor")
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined()
  })
})
