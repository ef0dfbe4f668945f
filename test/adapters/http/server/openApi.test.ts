import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { apiWith } from "../../../../src/adapters/http/server/Api.ts"
import { http, webhook, whatsapp } from "../../../contracts/destinations/samples.ts"
import { start } from "../served.ts"

const { call, endpoint, url } = await start()
const document = (await call("GET", "/openapi.json", { key: null, org: null })).json

/** Needs no key. */
const calledByMeta = "/api/v1/webhooks/whatsapp/inbound"

const methods = new Set(["get", "post", "put", "patch", "delete"])
const operations = Object.entries(document["paths"] as Record<string, Record<string, Record<string, never>>>).flatMap(
  ([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation: operation as never as Operation }))
)
interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string; readonly schema: object }>
  readonly requestBody?: { readonly content: object }
  readonly responses: Record<
    string,
    { readonly headers?: object; readonly content?: Record<string, { readonly schema: { $ref?: string } }> }
  >
  readonly security?: ReadonlyArray<object>
}

describe("the OpenAPI document", () => {
  it("is OpenAPI 3.1 and lists every route that is served, and no other", () => {
    expect(document["openapi"]).toMatch(/^3\.1\./)
    const served = Object.values(apiWith([webhook, http, whatsapp]).groups).flatMap((group) =>
      Object.values(group.endpoints).map(
        ({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`
      )
    )
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...served].sort())
    expect(served.length).toBeGreaterThan(60)
  })

  it("has operations that are complete", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, method, operation } of operations) {
      expect(methods.has(method)).toBe(true)
      expect(operation.summary, path).toBeTruthy()
      const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === "path").map(({ name }) => name)
      expect(inPath, path).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
      expect(Object.keys(operation.responses).some((status) => status.startsWith("2"))).toBe(true)
      const saysAll =
        /\/(resume|enable|retry-now|alert-targets\/\{id\}\/test|rebuild|set-aside\/retry|set-aside\/\{id\}\/retry)$/.test(
          path
        ) && !path.startsWith("/api/v1/destinations/")
      expect(operation.requestBody !== undefined, path).toBe(["post", "put", "patch"].includes(method) && !saysAll)
      if (path.startsWith("/api/") && path !== calledByMeta) {
        expect(operation.security, path).toEqual([{ apiKey: [] }])
        expect(Object.keys(operation.responses), path).toEqual(expect.arrayContaining(["400", "401", "403", "503"]))
      }
    }
  })

  it("has no reference that leads nowhere, and one form of problem", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
      ([, name]) => name!
    )
    const schemas = Object.keys(document["components"].schemas)
    expect(references.filter((name) => !schemas.includes(name))).toEqual([])
    expect(schemas.filter((name) => !references.includes(name))).toEqual([])
    expect(schemas.filter((name) => name.startsWith("Problem"))).toEqual(["Problem"])
    for (const { operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue
        expect(response.content!["application/problem+json"]!.schema).toEqual({ $ref: "#/components/schemas/Problem" })
      }
    }
  })

  it("names the headers of every refusal for asking too much", () => {
    for (const { path, operation } of operations) {
      const tooMuch = operation.responses["429"]
      if (tooMuch === undefined) continue
      expect(Object.keys(tooMuch.headers ?? {}), path).toEqual(["Retry-After"])
    }
  })

  it("has numbers that JSON can hold, and no other", () => {
    expect(JSON.stringify(document)).not.toMatch(/"-?Infinity"|"NaN"/)
  })

  it("names the fields and limits a caller must know", () => {
    const { schemas } = document["components"]
    expect(schemas["MessageRequest"].required).toEqual(["channel", "to", "payloadJson"])
    expect(schemas["MessageRequest"].additionalProperties).toBe(false)
    const list = operations.find(({ operation }) => operation.operationId === "messages.list")!.operation
    expect(list.parameters!.find(({ name }) => name === "limit")!.schema).toEqual({
      type: "integer",
      minimum: 1,
      maximum: 200,
      default: 50
    })
  })
})

describe("what readers and generators of the document need", () => {
  interface Schema {
    readonly $ref?: string
    readonly type?: string
    readonly title?: string
    readonly description?: string
    readonly items?: unknown
    readonly properties?: Record<string, Schema>
  }
  type Content = Record<string, { readonly schema: Schema; readonly example?: unknown }>
  const described = operations.map(({ path, method, operation }) => ({
    where: `${method} ${path}`,
    operation: operation as unknown as Operation & {
      readonly description?: string
      readonly parameters?: ReadonlyArray<{ readonly name: string; readonly description?: string }>
      readonly requestBody?: { readonly content: Content }
      readonly responses: Record<string, { readonly content?: Content }>
    }
  }))
  const schemas = document["components"].schemas as Record<string, Schema>

  it("says where the service is, how to prove who one is, and under which terms", () => {
    expect(document["servers"]).toEqual([{ url: "/", description: expect.any(String) }])
    expect(document["components"].securitySchemes["apiKey"]).toMatchObject({ type: "http", scheme: "bearer" })
    expect(document["info"]).toMatchObject({
      license: { identifier: "Apache-2.0" },
      contact: { name: expect.any(String) }
    })
    for (const tag of document["tags"]) expect(tag.description, tag.name).toBeTruthy()
  })

  it("has a short summary, a description, a 4xx and a statement on security for each operation", () => {
    for (const { where, operation } of described) {
      expect(operation.summary!.length, `${where}: ${operation.summary}`).toBeLessThanOrEqual(80)
      expect(operation.summary, where).not.toMatch(/\.$/)
      expect(operation.description!.length, where).toBeGreaterThanOrEqual(operation.summary!.length)
      expect(
        Object.keys(operation.responses).some((status) => status.startsWith("4")),
        where
      ).toBe(true)
      expect(operation.security, where).toBeDefined()
    }
  })

  it("has an example for each body in JSON, and each fits its schema", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false })
    ajv.addSchema({ $id: "document", components: document["components"] })
    const wrong: Array<string> = []
    let count = 0
    for (const { where, operation } of described) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)].flatMap((body) =>
        Object.entries(body?.content ?? {}).filter(([type]) => type === "application/json")
      )
      for (const [, { schema, example }] of bodies as ReadonlyArray<[string, Content[string]]>) {
        const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'))
        count += 1
        if (example === undefined || !ajv.validate(local, example)) {
          wrong.push(`${where}: ${JSON.stringify(example)} ${ajv.errorsText()}`)
        }
      }
    }
    expect(wrong).toEqual([])
    expect(count).toBeGreaterThan(100)
    const [problem] = (schemas["Problem"] as { examples?: ReadonlyArray<unknown> }).examples!
    expect(ajv.validate({ $ref: "document#/components/schemas/Problem" }, problem)).toBe(true)
  })

  it("has examples of requests that are taken", async () => {
    const known = await endpoint()
    for (const path of ["/outbound/messages", "/webhook-endpoints", "/events"]) {
      const operation = document["paths"][`/api/v1${path}`].post
      const example = operation.requestBody.content["application/json"].example as object
      const body = "to" in example ? { ...example, to: known } : example
      const answer = await call("POST", `/api/v1${path}`, { body })
      expect(answer.status, `${path} ${answer.text}`).toBe(201)
    }
  })

  it("says of each parameter and each field what it is", () => {
    const silent = new Set<string>()
    for (const { where, operation } of described) {
      for (const { name, description } of operation.parameters ?? []) if (!description) silent.add(`${where} ${name}`)
    }
    const look = (schema: unknown, at: string): void => {
      if (typeof schema !== "object" || schema === null) return
      const { properties = {} } = schema as Schema
      for (const [name, field] of Object.entries(properties)) {
        if (field.$ref === undefined && !field.description) silent.add(`${at}.${name}`)
      }
      const { examples: _, example: __, ...rest } = schema as Record<string, unknown>
      for (const [name, inner] of Object.entries(rest)) look(inner, `${at}.${name}`)
    }
    for (const [name, schema] of Object.entries(schemas)) look(schema, name)
    expect([...silent], "describe each in its schema, or its name in openApiWords.ts").toEqual([])
  })

  it("has no two schemas of one form under numbered names", () => {
    const copies = Object.keys(schemas).filter((name) => {
      const original = schemas[name.replace(/_\d+$/, "")]
      return /_\d+$/.test(name) && JSON.stringify(original) === JSON.stringify(schemas[name])
    })
    expect(copies).toEqual([])
  })

  it("says what each array holds", () => {
    const look = (schema: unknown): ReadonlyArray<unknown> =>
      typeof schema !== "object" || schema === null
        ? []
        : [
            ...((schema as Schema).type === "array" && (schema as Schema).items === undefined ? [schema] : []),
            ...Object.values(schema).flatMap(look)
          ]
    expect(look(schemas)).toEqual([])
  })
})

describe("the docs page", () => {
  it("brings everything it shows with it", async () => {
    const response = await fetch(`${url}/docs`)
    expect(response.headers.get("content-type")).toMatch(/^text\/html/)
    const page = await response.text()
    expect(page).toContain("/api/v1/outbound/messages")
    // Outside its one inlined script, nothing is fetched from anywhere.
    const frame = page.replace(/<script>[\s\S]*<\/script>/, "")
    expect(frame).toContain("<title>Posthaste</title>")
    expect(frame).not.toMatch(/\b(src|href)=|@import|url\(/)
    expect(page).not.toMatch(/<script[^>]+src=["']?https?:/)
  })
})

describe("a page for readers", () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, { headers, redirect: "manual" })

  it("is where the bare address leads to", async () => {
    const response = await get("/")
    expect([response.status, response.headers.get("location")]).toEqual([302, "/docs"])
  })

  it.each(["/docs", "/openapi.json"])(
    "%s is compressed for those who accept that, and the same for all",
    async (path) => {
      const plain = await get(path, { "accept-encoding": "identity" })
      const zipped = await get(path, { "accept-encoding": "br, gzip;q=0.5" })
      const refused = await get(path, { "accept-encoding": "gzip;q=0" })
      expect(plain.headers.get("content-encoding")).toBeNull()
      expect(refused.headers.get("content-encoding")).toBeNull()
      expect(zipped.headers.get("content-encoding")).toBe("gzip")
      expect(zipped.headers.get("vary")).toBe("accept-encoding")
      const text = await plain.text()
      expect(await zipped.text()).toBe(text)
      expect(Number(zipped.headers.get("content-length"))).toBeLessThan(text.length / 2)
    }
  )

  it.each(["/docs", "/openapi.json"])("%s is not sent again to those who have it", async (path) => {
    const etag = (await get(path)).headers.get("etag")!
    const again = await get(path, { "if-none-match": `"other", W/${etag}` })
    expect([again.status, await again.text()]).toEqual([304, ""])
    const other = await get(path, { "if-none-match": `"other"` })
    expect(other.status).toBe(200)
    await other.text()
    // The tag of one encoding says nothing about the other.
    const plain = await get(path, { "accept-encoding": "identity", "if-none-match": etag })
    expect(plain.status).toBe(200)
    await plain.text()
  })
})
