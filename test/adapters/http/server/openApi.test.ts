import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { apiWith } from "../../../../src/adapters/http/Api.ts"
import { http, webhook, whatsapp } from "../../../contracts/destinations/samples.ts"
import { start } from "../served.ts"

const { call, endpoint, url } = await start()
const document = (await call("GET", "/openapi.json", { key: null, org: null })).json

/** Needs no key. */
const calledByMeta = "/api/v1/webhooks/whatsapp/inbound"

interface Shape {
  readonly type?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly format?: string
  readonly properties?: object
  readonly additionalProperties?: unknown
  readonly title?: unknown
  readonly pattern?: string
}

const methods = new Set(["get", "post", "put", "patch", "delete"])
const nameOf = ({ $ref }: { readonly $ref: string }) => $ref.split("/").at(-1)!

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
        /\/(resume|enable|retry-now|alert-targets\/\{id\}\/test|rebuild|parked\/retry)$/.test(path) &&
        !path.startsWith("/api/v1/destinations/")
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
    const refusals = document["components"].responses as Record<string, { readonly content: object }>
    for (const { operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue
        const { $ref } = response as { readonly $ref?: string }
        expect(refusals[$ref?.split("/").at(-1) ?? status]?.content, status).toEqual({
          "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } }
        })
      }
    }
  })

  it("says when to ask again, who is asked, and where what was made is", () => {
    const { responses, parameters } = document["components"]
    for (const name of ["TooMuch", "Unavailable"]) expect(responses[name].headers, name).toHaveProperty("Retry-After")
    expect(responses["Unauthorized"].headers).toHaveProperty("WWW-Authenticate")
    for (const { path, operation } of operations) {
      const named = (operation.parameters ?? []).map((each) => each.name ?? nameOf(each as never))
      expect(named.includes("OrgId"), path).toBe(operation.security !== undefined && operation.security.length > 0)
      for (const status of ["201", "202"]) {
        if (operation.responses[status]) expect(operation.responses[status].headers, path).toHaveProperty("Location")
      }
    }
    expect(Object.keys(parameters)).toEqual(["OrgId", "TraceParent"])
  })

  it("has bodies that may be left out where none is needed, and the service takes none there", async () => {
    const optional = operations.filter(
      ({ operation }) => (operation.requestBody as { required?: boolean } | undefined)?.required === false
    )
    expect(optional.length).toBeGreaterThan(15)
    for (const { path } of optional) {
      const answer = await call("POST", path.replaceAll(/\{\w+\}/g, crypto.randomUUID()), {})
      expect([200, 201, 202, 404], `${path} ${answer.text}`).toContain(answer.status)
    }
  })

  it("has numbers, texts and objects in the form that generators read", () => {
    const wrong: Array<string> = []
    const look = (schema: unknown, at: string): void => {
      if (typeof schema !== "object" || schema === null) return
      const {
        type,
        minimum,
        maximum = Infinity,
        format,
        properties,
        additionalProperties,
        title,
        pattern
      } = schema as Shape
      if (type === "integer" && ((minimum ?? -1) < 0 || (maximum > 2 ** 31 - 1 && format !== "int64"))) wrong.push(at)
      if (type === "object" && properties === undefined && additionalProperties === undefined) wrong.push(at)
      if (type === "string" && typeof title === "string" && pattern === undefined) wrong.push(`${at}: ${title}`)
      if (type === undefined && "allOf" in schema) wrong.push(at)
      if ("prefixItems" in schema) wrong.push(at)
      for (const [name, inner] of Object.entries(schema)) if (!/^examples?$/.test(name)) look(inner, `${at}/${name}`)
    }
    look(document["components"].schemas, "")
    look(document["paths"], "")
    expect(wrong).toEqual([])
  })

  it("has numbers that JSON can hold, and no other", () => {
    expect(JSON.stringify(document)).not.toMatch(/"-?Infinity"|"NaN"/)
  })

  it("names the fields and limits a caller must know", () => {
    const { schemas } = document["components"]
    expect(schemas["MessageRequest"].required).toEqual(["channel", "to", "payloadJson"])
    expect(schemas["MessageRequest"].additionalProperties).toBe(false)
    const list = operations.find(({ operation }) => operation.operationId === "messages.list")!.operation
    expect(list.parameters!.find(({ name }) => name === "limit")!.schema).toMatchObject({
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

  it("has an example for each request, which fits its schema, and the service takes each", async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false })
    ajv.addSchema({ $id: "document", components: document["components"] })
    const known = await endpoint()
    const wrong: Array<string> = []
    for (const { where, operation } of described) {
      for (const [type, { schema, example }] of Object.entries((operation.requestBody?.content ?? {}) as Content)) {
        const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'))
        if (type !== "application/json" || example === undefined || !ajv.validate(local, example))
          wrong.push(`${where}: ${JSON.stringify(example)} ${ajv.errorsText()}`)
        const [method, path] = where.split(" ") as [string, string]
        if (path === calledByMeta) continue
        const body = JSON.parse(JSON.stringify(example).replaceAll("97a25ca8-c020-40d6-9459-ea2cadffe0da", known))
        const filled = path.replace("{channel}", "whatsapp").replaceAll(/\{\w+\}/g, known)
        // Only the operator names an org, in its path or in the body.
        const answer = await call(method.toUpperCase(), filled, { body })
        const operators = answer.status === 403 ? await call(method.toUpperCase(), filled, { body, org: null }) : answer
        // What the sample id names need not be there.
        if (![200, 201, 202, 404].includes(operators.status)) wrong.push(`${where}: ${operators.text}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it("says of each parameter and of each field of a request what it is", () => {
    const silent = new Set<string>()
    for (const { where, operation } of described) {
      for (const { name, description } of operation.parameters ?? []) {
        if (name !== undefined && !description) silent.add(`${where} ${name}`)
      }
      for (const { schema } of Object.values((operation.requestBody?.content ?? {}) as Content)) {
        const { properties = {} } = schemas[nameOf(schema as never)]!
        for (const [name, field] of Object.entries(properties)) {
          if (!JSON.stringify(field).includes("$ref") && !field.description) silent.add(`${where}: ${name}`)
        }
      }
    }
    expect([...silent], "describe each in its schema").toEqual([])
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
