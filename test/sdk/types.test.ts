/** The types and the table of routes of the client agree with what the service serves. */
import { describe, expect, it } from "vitest"
import { routes } from "../../sdk/src/api.ts"
import { apiSource, isCurrent, notCalled, servedDocument } from "../../sdk/types.ts"

const document = servedDocument()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ path, method: method.toUpperCase(), operationId }))
)

describe("the client", () => {
  it("has the types of the routes as they are served now (else: npm run sdk:types)", () => {
    expect(isCurrent() ? "current" : "sdk/src/api.ts is not what the service serves: run `npm run sdk:types`").toBe(
      "current"
    )
  })

  it("has every route, by its group and name", () => {
    for (const { path, method, operationId } of operations.filter((each) => !notCalled.has(each.operationId))) {
      const [group, name] = operationId.split(".") as [string, string]
      expect(routes[group]?.[name]?.slice(0, 2)).toEqual([method, path])
    }
  })

  it("leaves out no route but those that another way is made for", () => {
    const known = new Set(operations.map(({ operationId }) => operationId))
    for (const left of notCalled) expect(known).toContain(left)
    const count = Object.values(routes).reduce((sum, group) => sum + Object.keys(group).length, 0)
    expect(count).toBe(operations.length - notCalled.size)
  })
})

describe("the types that are made", () => {
  const typeOf = (schema: object) => {
    const source = apiSource({ paths: {}, components: { schemas: { X: schema } } })
    return /export type X = (.*?)\n\n/s.exec(source)?.[1]
  }

  it.each([
    [{ type: "integer" }, "number"],
    [{}, "unknown"],
    [{ enum: ["a", 1] }, `"a" | 1`],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "string | null"],
    [{ type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } }, "ReadonlyArray<string | null>"],
    [{ type: "array", prefixItems: [{ type: "number" }, { type: "string" }] }, "readonly [number, string]"],
    [{ type: "object", additionalProperties: { type: "string" } }, "{ readonly [name: string]: string }"],
    [
      { allOf: [{ $ref: "#/components/schemas/A" }, { anyOf: [{ type: "string" }, { type: "null" }] }] },
      "A & (string | null)"
    ],
    [
      { type: "object", properties: { a: { type: "string" }, "b-c": { type: "boolean" } }, required: ["a"] },
      `{\n  readonly a: string\n  readonly "b-c"?: boolean | undefined\n}`
    ]
  ])("say of %j: %s", (schema, type) => {
    expect(typeOf(schema)).toBe(type)
  })
})
