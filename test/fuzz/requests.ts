/**
 * Requests made from the OpenAPI document: each begins as its operation's example and is then bent, so that most of them get past
 * the first check and into the code behind it. What earlier answers gave away (ids, cursors) is used again.
 */
import type { JsonSchema } from "../../src/adapters/http/server/openApiDocument.ts"
import type { Dice } from "./dice.ts"

/** JSON as it is written, for what `JSON.stringify` would not write. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export interface Request {
  readonly operationId: string
  readonly method: string
  /** The path with its parameters, encoded. */
  readonly path: string
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly headers: ReadonlyArray<readonly [string, string]>
  /** A JSON value, in which `Raw` stands for itself; bytes go as they are. */
  readonly body: { readonly json: unknown } | { readonly bytes: Buffer } | null
}

interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required?: boolean
  readonly schema: JsonSchema
}

interface Operation {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>
  }
}

export interface Document {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, JsonSchema> }
}

/** What answers gave away. */
export interface Known {
  /** By the collection that they are in, such as /api/v1/outbound/messages. */
  readonly ids: Map<string, Array<string>>
  readonly cursors: Array<string>
}

const KNOWN_MAX = 100

const collectionOf = (path: string): string => path.split(/\/(?:\{|[0-9a-f]{8}-)/, 1)[0]!

/** Remembers ids and cursors of the answer to a request for `path`. */
export const remember = (known: Known, path: string, text: string): void => {
  const collection = collectionOf(path)
  const ids = known.ids.get(collection) ?? []
  for (const [, id] of text.matchAll(/"id":"([0-9a-f-]{36})"/g)) add(ids, id!)
  known.ids.set(collection, ids)
  for (const [, cursor] of text.matchAll(/"nextCursor":"([^"]+)"/g)) add(known.cursors, cursor!)
}

const add = (known: Array<string>, value: string): void => {
  if (known.includes(value)) return
  if (known.length >= KNOWN_MAX) known.shift()
  known.push(value)
}

const ENDPOINTS = "/api/v1/webhook-endpoints"

const nobody = "00000000-0000-4000-8000-000000000000"

const oddTexts: ReadonlyArray<string> = [
  ...["", " ", "\0", "a\0b", "\u0001", "\u009b31m", "\u202e", "\ufeff", "\ud800", "a\udfff", "\u{1f4ee}", "e\u0301"],
  ...["null", "true", "-1", "0", "1e309", "NaN", "__proto__", "constructor", "toString", "[object Object]"],
  ...["'; drop table event; --", "%", "%00", "%s%n", "../../etc/passwd", "\\", '"', "{{secret}}", "<b>"],
  ...["9999-12-31T23:59:59.999Z", "10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z", "-000001-01-01T00:00:00Z"],
  ...["2026-02-30T00:00:00Z", "2026-11-19T09:30:00", "2026-11-19T09:30:00+99:99", "0000-00-00T00:00:00Z"],
  ...[
    "http://",
    "http://[::1",
    "https://user:pass@shop.example/",
    "ftp://shop.example/",
    "https://shop.example:99999/"
  ],
  ...["https://xn--/", "javascript:1", nobody, nobody.toUpperCase(), "message-x", "order.*", "*", "order..paid"],
  ...["a".repeat(256), "a".repeat(513), "é".repeat(3000), "\u{1f4ee}".repeat(2000)]
]

const oddNumbers: ReadonlyArray<unknown> = [
  ...[0, -1, 1, 0.5, -0.5, 1e21, 2 ** 31 - 1, 2 ** 31, 2 ** 53, -(2 ** 63), 31_622_400_001].map((number) => number),
  ...["1e400", "-1e400", "1e-400", "-0", "12345678901234567890", `1${"0".repeat(400)}`, "1.0000000000000000000001"].map(
    (text) => new Raw(text)
  )
]

const nested = (depth: number, open: string, close: string) => new Raw(open.repeat(depth) + close.repeat(depth))

const oddValues: ReadonlyArray<unknown> = [
  ...[null, true, false, [], {}, [[]], [null], { "": "" }, { "\0": 1 }, { a: { b: { c: {} } } }],
  ...[new Raw('{"__proto__":{"x":1}}'), new Raw('{"constructor":1,"constructor":2}'), new Raw('"\\ud800"')],
  ...[nested(40, "[", "]"), nested(2000, "[", "]"), nested(200, '{"a":', "}"), new Raw("[1,]"), new Raw("undefined")],
  ...[Array.from({ length: 300 }, (_, index) => index), Array.from({ length: 1500 }, () => ({}))],
  Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`key${index}`, "value"]))
]

/** Written by hand, because it must write what is no JSON too. */
export const written = (value: unknown): string => {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([name, inner]) => `${JSON.stringify(name)}:${written(inner)}`)
      .join(",")}}`
  }
  return JSON.stringify(value) ?? "null"
}

export const makerOf = (
  document: Document,
  dice: Dice,
  known: Known,
  account: { readonly key: string; readonly org: string }
) => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
  )

  const schemaOf = (schema: JsonSchema): JsonSchema =>
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split("/").at(-1)!]!

  const anyId = (collection?: string): string => {
    const ids =
      collection !== undefined && dice.chance(0.9) ? (known.ids.get(collection) ?? []) : [...known.ids.values()].flat()
    return ids.length > 0 && dice.chance(0.95) ? dice.pick(ids) : nobody
  }
  const oddText = () => (dice.chance(0.2) ? anyId() : dice.pick(oddTexts))
  const oddValue = (): unknown => {
    const kind = dice.next()
    return kind < 0.5 ? oddText() : kind < 0.75 ? dice.pick(oddNumbers) : dice.pick(oddValues)
  }

  /** A value that the schema describes, of fields that are required and some that are not. */
  const madeFor = (given: JsonSchema, name: string, depth = 0): unknown => {
    const schema = schemaOf(given)
    if (depth > 6) return null
    const variants = schema.anyOf ?? schema.oneOf
    if (variants !== undefined) return madeFor(dice.pick(variants), name, depth + 1)
    if (schema.enum !== undefined) return dice.pick(schema.enum)
    switch (schema.type) {
      case "object": {
        const { properties = {}, required = [], additionalProperties } = schema
        const named = Object.entries(properties)
          .filter(([field]) => required.includes(field) || dice.chance(0.3))
          .map(([field, inner]) => [field, madeFor(inner, field, depth + 1)])
        if (typeof additionalProperties === "object" && dice.chance(0.5)) {
          named.push([
            dice.pick(["order", "x-shop", "__proto__", oddText()]),
            madeFor(additionalProperties, "", depth + 1)
          ])
        }
        return Object.fromEntries(named)
      }
      case "array":
        return Array.from({ length: dice.below(4) }, () =>
          typeof schema.items === "object" ? madeFor(schema.items, name, depth + 1) : 1
        )
      case "integer":
      case "number":
        return dice.pick([schema.minimum ?? 0, schema.maximum ?? 1, 1, 5, 1000])
      case "boolean":
        return dice.chance(0.5)
      case "null":
        return null
      case "string":
        return textOf(name, schema)
      default:
        return dice.chance(0.5) ? { order: 4711 } : dice.pick(oddValues)
    }
  }

  const textOf = (name: string, schema: JsonSchema): string => {
    if (schema.format === "date-time")
      return dice.pick(["2026-11-19T09:30:00Z", "2999-01-01T00:00:00+01:00", oddText()])
    if (/^(to|id)$/.test(name)) return anyId(ENDPOINTS)
    if (/^(ids|.*Id)$/.test(name)) return anyId()
    if (/url/i.test(name)) return "https://shop.example/hook"
    return dice.pick(["order.paid", "webhook", "4711", "a", oddText()])
  }

  /** The same value with one place in it replaced, removed or doubled. */
  const bent = (value: unknown): unknown => {
    if (dice.chance(0.3)) return oddValue()
    if (Array.isArray(value) && value.length > 0) {
      const at = dice.below(value.length)
      return dice.chance(0.2) ? [...value, ...value] : value.map((item, index) => (index === at ? bent(item) : item))
    }
    if (typeof value === "object" && value !== null && !(value instanceof Raw)) {
      const entries = Object.entries(value)
      if (entries.length === 0 || dice.chance(0.1)) return { ...value, [oddText()]: oddValue() }
      const at = dice.below(entries.length)
      if (dice.chance(0.1)) return Object.fromEntries(entries.filter((_, index) => index !== at))
      return Object.fromEntries(entries.map(([name, inner], index) => [name, index === at ? bent(inner) : inner]))
    }
    return oddValue()
  }

  const bodyOf = ({ requestBody }: Operation): Request["body"] => {
    const content = requestBody?.content["application/json"]
    if (content === undefined) return dice.chance(0.05) ? { json: oddValue() } : null
    const kind = dice.next()
    if (kind < 0.03) return null
    if (kind < 0.08) {
      const text = written(content.example ?? {})
      const cut = Buffer.from(text.slice(0, dice.below(text.length + 1)))
      return {
        bytes: dice.pick([cut, Buffer.from([0xff, 0xfe]), Buffer.from(`\ufeff${text}`), Buffer.from(`${text}{}`)])
      }
    }
    const begun = kind < 0.45 ? withIds(content.example) : madeFor(content.schema, "")
    return { json: dice.chance(0.6) ? bent(begun) : begun }
  }

  /** Examples name ids that nobody has. */
  const withIds = (example: unknown): unknown =>
    JSON.parse(JSON.stringify(example ?? {}), (_, value) => {
      return typeof value === "string" && /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(value) ? anyId(ENDPOINTS) : value
    })

  const inPath = (name: string, path: string): string => {
    if (dice.chance(0.12)) {
      return dice.pick([
        ...[
          "%00",
          "%ff",
          "%ed%a0%80",
          "..%2f..",
          "%2e%2e",
          "%",
          "%zz",
          "a".repeat(3000),
          "é",
          "~",
          "%20",
          "a%2Fb",
          ";x=1"
        ],
        encodeURIComponent(oddText().toWellFormed())
      ])
    }
    if (name === "channel") return dice.pick(["webhook", "http", "amqp", "whatsapp", "echo"])
    if (name === "name") return dice.pick(["order.paid", "messages", "health"])
    if (name === "stream") return `${dice.pick(["message", "circuit", "replay", "event"])}-${anyId()}`
    const collection = collectionOf(path)
    return anyId(collection.endsWith("/circuits") || collection.endsWith("/destinations") ? ENDPOINTS : collection)
  }

  const cursor = (): string => {
    if (known.cursors.length === 0 || dice.chance(0.2)) return oddText()
    const real = dice.pick(known.cursors)
    if (dice.chance(0.5)) return real
    const at = dice.below(real.length)
    return dice.pick([real.slice(0, at), `${real.slice(0, at)}A${real.slice(at + 1)}`, real + real, real.toUpperCase()])
  }

  const inQuery = ({ name, schema }: Parameter): string => {
    if (name === "cursor") return cursor()
    if (dice.chance(0.35)) return oddText()
    if (name === "metadata") return dice.pick(["order=4711", "=", "order", "order=\0", `${"a".repeat(200)}=1`])
    const value = madeFor(schema, name)
    return typeof value === "string" ? value : String(written(value))
  }

  const headersOf = ({ parameters = [] }: Operation, body: Request["body"]): Array<readonly [string, string]> => {
    const headers: Array<readonly [string, string]> = []
    if (dice.chance(0.97)) headers.push(["authorization", `Bearer ${account.key}`])
    else
      headers.push([
        "authorization",
        dice.pick(["", "Bearer", "Basic eDp5", `Bearer ${"x".repeat(5000)}`, "Bearer \xff"])
      ])
    headers.push([
      "x-org-id",
      dice.chance(0.97) ? account.org : dice.pick(["", "a b", "\xe9", "a".repeat(65), "..", "default"])
    ])
    if (body !== null) {
      headers.push([
        "content-type",
        dice.chance(0.95)
          ? "application/json"
          : dice.pick(["application/json; charset=utf-16", "text/plain", "", "application/x-www-form-urlencoded"])
      ])
    }
    for (const { name } of parameters.filter((parameter) => parameter.in === "header")) {
      if (name.toLowerCase() === "x-org-id" || !dice.chance(0.4)) continue
      headers.push([name, dice.pick(["order-4711", "", " ", "a".repeat(256), "\xff\x80", "\t", anyId(), "a,b"])])
    }
    if (dice.chance(0.08)) {
      headers.push(
        dice.pick<readonly [string, string]>([
          ["traceparent", "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff"],
          ["traceparent", "\xff"],
          ["content-encoding", "gzip"],
          ["expect", "100-continue"],
          ["range", "bytes=0-1"],
          ["if-none-match", "*"],
          ["accept", "text/event-stream"],
          ["last-event-id", "99999999999999999999-1"],
          ["x-forwarded-for", "' or 1=1"],
          ["cookie", "a=b; a=c"],
          ["x-long", "a".repeat(20_000)]
        ])
      )
    }
    return headers
  }

  return (): Request => {
    const { path, method, operation } = dice.pick(operations)
    const body = bodyOf(operation)
    const query = (operation.parameters ?? [])
      .filter((parameter) => parameter.in === "query" && (parameter.required === true || dice.chance(0.25)))
      .map((parameter) => [parameter.name, inQuery(parameter)] as const)
    if (dice.chance(0.03)) query.push([dice.pick(["x", "", "\0", "limit", "__proto__"]), oddText()])
    return {
      operationId: operation.operationId,
      method: dice.chance(0.98) ? method : dice.pick(["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"]),
      path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => inPath(name, path)),
      query,
      headers: headersOf(operation, body),
      body
    }
  }
}

/** The request with one thing less in it, in all ways: what is tried to find the least that still goes wrong. */
export function* smaller(request: Request): Generator<Request> {
  const without = <A>(list: ReadonlyArray<A>, at: number) => list.filter((_, index) => index !== at)
  for (const [at] of request.query.entries()) yield { ...request, query: without(request.query, at) }
  for (const [at] of request.headers.entries()) yield { ...request, headers: without(request.headers, at) }
  if (request.body === null) return
  yield { ...request, body: null }
  if (!("json" in request.body)) return
  for (const json of smallerJson(request.body.json)) yield { ...request, body: { json } }
}

function* smallerJson(value: unknown): Generator<unknown> {
  if (typeof value !== "object" || value === null || value instanceof Raw) {
    if (typeof value === "string" && value.length > 1) yield value.slice(0, value.length >> 1)
    return
  }
  if (Array.isArray(value)) {
    if (value.length > 4) yield value.slice(0, value.length >> 1)
    for (const [at, item] of value.slice(0, 50).entries()) {
      yield value.filter((_, index) => index !== at)
      for (const less of smallerJson(item)) yield value.map((each, index) => (index === at ? less : each))
    }
    return
  }
  const entries = Object.entries(value)
  for (const [at, [name, inner]] of entries.slice(0, 50).entries()) {
    yield Object.fromEntries(entries.filter((_, index) => index !== at))
    for (const less of smallerJson(inner)) yield { ...value, [name]: less }
  }
}
