/**
 * What no database holds (NUL, half a surrogate pair) and what not everybody can write down (the year 10000) is refused by
 * name, at every field of every route: the fields are those of the OpenAPI document, so a new one is tried by itself.
 */
import { request } from "node:http"
import { describe, expect, it } from "vitest"
import { type Answer, type Json, OPERATOR, start } from "../served.ts"

const { call, url } = await start()
const document = (await call("GET", "/openapi.json", { key: null, org: null })).json

interface Schema {
  readonly type?: string
  readonly format?: string
  readonly enum?: ReadonlyArray<string>
  readonly $ref?: string
  readonly anyOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
}

const resolved = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : resolved(document["components"]["schemas"][schema.$ref.split("/").at(-1)!])

type Path = ReadonlyArray<string | 0>

interface Place {
  readonly at: Path
  readonly isTime: boolean
  /** What tells the place's object from its siblings in a union. */
  readonly tag: object
}

/** Every place of a request's body that holds text. */
const textsIn = (given: Schema, at: Path = [], outer: object = {}): ReadonlyArray<Place> => {
  const schema = resolved(given)
  const [type, ...types] = schema.properties?.["type"]?.enum ?? []
  const tag = at.length === 0 && type !== undefined && types.length === 0 ? { type } : outer
  const inner = [...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap((each) => textsIn(each, at, tag))
  const own = schema.type === "string" ? [{ at, isTime: isTimeIn(schema), tag }] : []
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => textsIn(field, [...at, name], tag))
  const items = schema.items === undefined ? [] : textsIn(schema.items, [...at, 0], tag)
  const { additionalProperties: more } = schema
  return [
    ...own,
    ...inner,
    ...fields,
    ...items,
    ...(typeof more === "object" ? textsIn(more, [...at, "any"], tag) : [])
  ]
}

const isTimeIn = ({ format, allOf }: Schema): boolean =>
  format === "date-time" || (allOf ?? []).some((each) => isTimeIn(each))

const bodyWith = ([first, ...rest]: Path, value: string): unknown =>
  first === undefined ? value : first === 0 ? [bodyWith(rest, value)] : { [first]: bodyWith(rest, value) }

const nameOf = (path: Path) =>
  path.reduce<string>((name, part) => (part === 0 ? `${name}[0]` : `${name && `${name}.`}${part}`), "")

const broken = ["a\0b", "\ud800"]
const distant = ["10000-01-01T00:00:00Z", "+010000-01-01T00:00:00.000Z", "9999-12-31T23:59:59-01:00"]

const fieldsOf = (answer: Answer): ReadonlyArray<string> =>
  (answer.json["errors"] as ReadonlyArray<{ field: string }>).map(({ field }) => field)

/** In a batch each entry is answered on its own. */
const refusalIn = (answer: Answer, path: string) => {
  if (!path.endsWith("/batch") || answer.json["items"] === undefined) return [answer.status, fieldsOf(answer)]
  const [{ status, problem }] = answer.json["items"]
  return [status, fieldsOf({ ...answer, json: problem })]
}

const operations = Object.entries(document["paths"] as Record<string, Record<string, Json>>)
  // What providers send is judged by its signature first, and no field of it is kept as it came.
  .filter(([path]) => !path.includes("/inbound"))
  .flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [method.toUpperCase(), path, operation] as const)
  )

const filled = (path: string) => path.replace("{channel}", "whatsapp").replaceAll(/\{\w+\}/g, "x")

describe("text that no database holds, and times that not everybody can write down", () => {
  it("are looked for in many fields", () => {
    const fields = operations.flatMap(([, , operation]) => bodyFieldsOf(operation))
    expect(fields.length).toBeGreaterThan(150)
    expect(fields.filter(({ isTime }) => isTime).length).toBeGreaterThan(10)
  })

  it.each(operations)("are refused by name in the body of %s %s", async (method, path, operation) => {
    for (const { at, isTime, tag } of bodyFieldsOf(operation)) {
      for (const value of isTime ? [...broken, ...distant] : broken) {
        const answer = await call(method, filled(path), { body: { ...tag, ...(bodyWith(at, value) as object) } })
        expect(refusalIn(answer, path), `${nameOf(at)} = ${JSON.stringify(value)}`).toEqual([
          400,
          expect.arrayContaining([nameOf(at)])
        ])
      }
    }
  })

  it.each(operations)("are refused by name in the address of %s %s", async (method, path, operation) => {
    const body = operation["requestBody"] === undefined ? {} : { body: {} }
    const parameters = ((operation["parameters"] ?? []) as ReadonlyArray<Json>).filter((one) =>
      ["path", "query"].includes(one["in"])
    )
    for (const { name, in: place, schema } of parameters) {
      for (const value of ["a%00b", "%ed%a0%80", "%zz", ...(isTimeIn(schema) ? distant.map(encodeURIComponent) : [])]) {
        const asked =
          place === "path" ? path.replace(`{${name}}`, value) : `${path}?${encodeURIComponent(name)}=${value}`
        const answer = await call(method, filled(asked), body)
        expect([answer.status, fieldsOf(answer)], `${name} = ${value}`).toEqual([
          400,
          expect.arrayContaining([place === "path" ? "path" : name])
        ])
      }
    }
  })
})

function bodyFieldsOf(operation: Json) {
  const schema = operation["requestBody"]?.content?.["application/json"]?.schema
  return schema === undefined ? [] : textsIn(schema)
}

describe("the path of a request", () => {
  it.each([
    "//api/v1/outbound/messages",
    "/api/v1/outbound/messages/",
    "/api/v1/outbound/messages;x",
    "/api/v1/orgs/;x=1",
    "/docs/",
    "/api//v1/outbound/messages",
    "/api/v1/outbound/./messages",
    "/api/v1/dossiers/%2e%2e/activity",
    "/api/v1/api-keys/%2E%2E/outbound/messages",
    "/%61pi/v1/outbound/messages",
    "/api/v1/api%2Dkeys",
    "/API/v1/outbound/messages"
  ])("has one spelling, so %s leads nowhere", async (path) => {
    // fetch would mend the path first.
    const answered = await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${OPERATOR}`, "x-org-id": "acme" }
      const { hostname, port } = new URL(url)
      request({ hostname, port, path, headers }, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end()
    })
    expect(answered).toBe(404)
  })

  it("may name a thing with escapes", async () => {
    const path = `/api/v1/dossiers/${encodeURIComponent("order/paid?ä")}/consents/whatsapp`
    const answer = await call("PUT", path, { body: { granted: true, source: "a form" } })
    expect([answer.status, answer.json["dossierId"]]).toEqual([200, "order/paid?ä"])
  })
})
