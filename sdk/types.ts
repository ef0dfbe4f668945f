/**
 * `npm run sdk:types`: makes `sdk/src/api.ts`, the types and the table of routes of the client, from the OpenAPI document
 * of the service. test/sdk/types.test.ts makes them again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { apiWith } from "../src/adapters/http/Api.ts"
import { Channels } from "../src/application/ports/Channels.ts"
import * as AllChannels from "../src/setup/channels.ts"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly items?: JsonSchema | false
  readonly prefixItems?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: JsonSchema | boolean
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>

interface Operation {
  readonly operationId: string
  readonly tags: ReadonlyArray<string>
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<{
    readonly $ref?: string
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly description?: string
    readonly schema: JsonSchema
  }>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

/** The document that the service serves. */
export const servedDocument = (): OpenApiDocument =>
  OpenApi.fromApi(
    apiWith(Effect.runSync(Effect.provide(Channels, AllChannels.unused)).values())
  ) as unknown as OpenApiDocument

/** What no caller of the client calls this way: `feed()` follows the feed, and Meta alone may call its webhook. */
export const notCalled: ReadonlySet<string> = new Set([
  "feed.follow",
  "whatsAppReceipts.verify",
  "whatsAppReceipts.take"
])

export const file = join(import.meta.dirname, "src/api.ts")

export const apiSource = (document: OpenApiDocument): string => {
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
    .filter(({ operation }) => !notCalled.has(operation.operationId))
  const groups = new Map<string, Array<string>>()
  const tables = new Map<string, Array<string>>()
  for (const { path, method, operation } of operations) {
    const [group, name] = operation.operationId.split(".") as [string, string]
    const { signature, features } = describe(document, path, operation)
    const comment = commentOf(operation.description ?? operation.summary, "    ")
    groups.set(group, [...(groups.get(group) ?? []), `${comment}    ${name}${signature}`])
    const row = [method.toUpperCase(), path, ...(features.length > 0 ? [features.join(" ")] : [])]
    tables.set(group, [...(tables.get(group) ?? []), `    ${name}: ${JSON.stringify(row)}`])
  }
  const schemas = Object.entries(document.components.schemas)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .filter(([name]) => name !== "Problem" && !/Page(AsOf)?$/.test(name))
    .map(([name, schema]) => `${commentOf(schema.description, "")}export type ${name} = ${typeOf(schema, "")}\n`)
  return [
    "// Made by `npm run sdk:types` from the OpenAPI document of the service: change that, and run it again.",
    `import type { CallOptions, KeyedCallOptions, Pages, Route } from "./client.ts"`,
    `import type { ProblemDocument as Problem } from "./errors.ts"\n`,
    ...schemas,
    "/** Every route of the service, by group. */",
    "export interface Api {",
    ...[...groups].map(([group, members]) => `  readonly ${group}: {\n${members.join("\n")}\n  }`),
    "}\n",
    "/** How each route is called: its method, its path, and what it takes and answers. */",
    "export const routes: Readonly<Record<string, Readonly<Record<string, Route>>>> = {",
    [...tables].map(([group, rows]) => `  ${group}: {\n${rows.join(",\n")}\n  }`).join(",\n"),
    "}\n"
  ].join("\n")
}

const describe = (document: OpenApiDocument, path: string, operation: Operation) => {
  // One that is referred to is a header that the client sends by itself.
  const parameters = (operation.parameters ?? []).filter(({ $ref }) => $ref === undefined)
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name}: string`)
  const query = parameters.filter((parameter) => parameter.in === "query")
  const body = operation.requestBody?.content["application/json"]?.schema
  const answers = Object.entries(operation.responses).filter(([status]) => status.startsWith("2"))
  const answer = [...new Set(answers.map(([, { content }]) => answerType(content)))].join(" | ")
  const item = query.some(({ name }) => name === "cursor") ? itemOf(document, answers) : null
  const keyed = parameters.some((parameter) => parameter.name === "idempotency-key")
  const resolved = body && resolve(document, body)
  const keyInBody = resolved?.properties?.["idempotencyKey"] !== undefined
  const entries = Object.entries(resolved?.properties ?? {}).find(
    ([, { items }]) => items && resolve(document, items).properties?.["idempotencyKey"] !== undefined
  )
  const features = [
    ...(body ? ["body"] : []),
    ...(query.length > 0 ? ["query"] : []),
    ...(keyed ? ["key"] : []),
    ...(keyInBody ? ["keyInBody"] : []),
    ...(entries ? [`keyInEach:${entries[0]}`] : []),
    ...(item ? ["pages"] : [])
  ]
  const bodyOptional = resolved?.properties !== undefined && !resolved.required?.length && resolved.anyOf === undefined
  const queryType = `{ ${query
    .map(
      ({ name, required, schema }) =>
        `${JSON.stringify(name)}${required ? "" : "?"}: ${queryTypeOf(name, schema, !!required)}`
    )
    .join("; ")} }`
  const given = [
    ...inPath,
    ...(body ? [`body${bodyOptional ? "?" : ""}: ${typeOf(body, "    ")}`] : []),
    ...(query.length > 0 ? [`query${query.some(({ required }) => required) ? "" : "?"}: ${queryType}`] : []),
    `options?: ${keyed ? "KeyedCallOptions" : "CallOptions"}`
  ]
  return {
    signature: `(${given.join(", ")}): ${item ? `Pages<${item}>` : `Promise<${answer}>`}`.replaceAll(
      /"(\w+)"(\??):/g,
      "$1$2:"
    ),
    features
  }
}

const queryTypeOf = (name: string, schema: JsonSchema, required: boolean): string =>
  (name === "limit" ? "number" : typeOf(schema, "")) + (required ? "" : " | undefined")

const answerType = (content: Content | undefined): string => {
  const json = content?.["application/json"]
  return content === undefined || Object.keys(content).length === 0
    ? "void"
    : json
      ? typeOf(json.schema, "    ")
      : "string"
}

/** What a page holds, or null when the answer is no page. */
const itemOf = (
  document: OpenApiDocument,
  answers: ReadonlyArray<readonly [string, { readonly content?: Content }]>
): string | null => {
  const { items, nextCursor } =
    resolve(document, answers[0]?.[1].content?.["application/json"]?.schema ?? {}).properties ?? {}
  return items?.items && nextCursor ? typeOf(items.items, "    ") : null
}

const resolve = (document: OpenApiDocument, schema: JsonSchema): JsonSchema =>
  schema.$ref ? document.components.schemas[schema.$ref.split("/").at(-1)!]! : schema

const typeOf = (schema: JsonSchema, indent: string): string => {
  if (schema.$ref) return schema.$ref.split("/").at(-1)!
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  // Beside fields it only says which of them are needed.
  const either = schema.properties ? undefined : (schema.anyOf ?? schema.oneOf)
  if (either) return [...new Set(either.map((one) => typeOf(one, indent)))].join(" | ")
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type
    case "integer":
    case "number":
      return "number"
    case "array":
      if (schema.prefixItems) return `readonly [${schema.prefixItems.map((one) => typeOf(one, indent)).join(", ")}]`
      return `ReadonlyArray<${schema.items ? typeOf(schema.items, indent) : "unknown"}>`
    case "object":
      return objectType(schema, indent)
  }
  const all = (schema.allOf ?? []).map((one) => typeOf(one, indent)).filter((type) => type !== "unknown")
  return all.length > 0
    ? all.map((type) => (all.length > 1 && type.includes("|") ? `(${type})` : type)).join(" & ")
    : "unknown"
}

const objectType = ({ properties, required = [], additionalProperties }: JsonSchema, indent: string): string => {
  if (properties === undefined) {
    const values = typeof additionalProperties === "object" ? typeOf(additionalProperties, indent) : "unknown"
    return `{ readonly [name: string]: ${values} }`
  }
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name)
    const type = typeOf(schema, `${indent}  `)
    const field = required.includes(name) ? `${key}: ${type}` : `${key}?: ${type} | undefined`
    // Without its description, which the service's own reference has: those would be a tenth of the package.
    return `${indent}  readonly ${field}\n`
  })
  return `{\n${fields.join("")}${indent}}`
}

const commentOf = (text: string | undefined, indent: string): string =>
  text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/").replaceAll(/\s+/g, " ")} */\n`

/** Where the command line has the plain verbs of each resource (src/cli/resources.ts). */
export const resourcesFile = join(import.meta.dirname, "../src/cli/resources.json")

const shortNames: Readonly<Record<string, string>> = { "webhook-endpoints": "endpoints", "api-keys": "keys" }
const verbNames: Readonly<Record<string, string>> = { patch: "update", put: "update", delete: "delete" }

/** The resources of the API as the command line needs them: what each verb calls, its fields, and the columns of its list. */
export const resourcesSource = (document: OpenApiDocument): string => {
  const tags = (document as unknown as { readonly tags: ReadonlyArray<{ name: string; description: string }> }).tags
  const operators = new Set(
    tags.filter(({ description }) => /^For the operator's/.test(description)).map(({ name }) => name)
  )
  const resources: Record<string, Record<string, object>> = {}
  for (const [path, methods] of Object.entries(document.paths)) {
    const [, segment, one] = /^\/api\/v1\/(?:outbound\/)?([\w-]+)(\/\{\w+\})?$/.exec(path) ?? []
    if (segment === undefined || ["stats", "feed", "channels", "streams"].includes(segment)) continue
    for (const [method, operation] of Object.entries(methods)) {
      const verb = verbNames[method] ?? (method === "post" ? "create" : one ? "get" : "list")
      const item = itemIn(document, operation)
      const body = operation.requestBody?.content["application/json"]?.schema
      const fields = body
        ? Object.entries(fieldsOf(document, body))
        : (operation.parameters ?? [])
            .filter((each) => each.in === "query" && !/^(limit|cursor)$/.test(each.name))
            .map(
              ({ name, schema, description }) =>
                [name, { ...schema, ...(description !== undefined && { description }) }] as const
            )
      const name = shortNames[segment] ?? segment
      resources[name] ??= {}
      resources[name][verb] = {
        method: method.toUpperCase(),
        path: path.slice("/api/v1".length),
        says: operation.description,
        ...(operation.tags.some((tag) => operators.has(tag)) && { operator: true }),
        ...(name === "erasures" && method === "post" && { final: true }),
        fields: fields
          .filter(([field]) => !isSecret(field, name))
          .map(([field, schema]) => [field, schema.description ?? "", kindOf(document, schema)]),
        ...(verb === "list" && { columns: columnsOf(document, item) })
      }
    }
  }
  return `${JSON.stringify(resources, null, 2)}\n`
}

/** A flag would show it in lists of processes: it comes by --file. */
const isSecret = (field: string, resource: string): boolean =>
  /^(secrets?|accessToken|appSecret|verifyToken|clientCertificate)$/.test(field) ||
  (resource === "alert-targets" && field === "routingKey")

const fieldsOf = (document: OpenApiDocument, given: JsonSchema): Readonly<Record<string, JsonSchema>> => {
  const { properties, anyOf = [] } = resolve(document, given)
  return properties ?? Object.assign({}, ...anyOf.map((each) => fieldsOf(document, each)))
}

const itemIn = (document: OpenApiDocument, { responses }: Operation): JsonSchema => {
  const page = resolve(document, responses["200"]?.content?.["application/json"]?.schema ?? {})
  return resolve(document, page.properties?.["items"]?.items || {})
}

const kindOf = (document: OpenApiDocument, { type, format, anyOf = [], ...schema }: JsonSchema): string => {
  const [inner] = anyOf
  if (inner && anyOf.length === 2) return kindOf(document, resolve(document, inner))
  return type === "string" ? (format === "date-time" ? "time" : "text") : schema.enum ? "text" : "json"
}

const COLUMNS_MAX = 7

/** The fields that people look for, in the order of columns. */
const columns =
  "id name status state does at type operation subject actor alive host pid channel to url eventType archived enforce attempts phoneNumberId exchange method by events matched replayed skipped messages suspended destinations waiting deadLetters failures openUntil prefix expiresAt description createdAt requestedAt endedAt lastSeen reason".split(
    " "
  )

/** The fields that fit into a cell. */
const columnsOf = (document: OpenApiDocument, { properties = {} }: JsonSchema): ReadonlyArray<string> =>
  Object.entries(properties)
    .filter(([, schema]) => isPlain(document, schema))
    .map(([name]) => name)
    .filter((name) => columns.includes(name))
    .toSorted((a, b) => columns.indexOf(a) - columns.indexOf(b))
    .slice(0, COLUMNS_MAX)

const isPlain = (document: OpenApiDocument, { $ref, type, anyOf = [] }: JsonSchema): boolean =>
  $ref === undefined &&
  (type === undefined ? anyOf.length === 2 && isPlain(document, anyOf[0]!) : !/array|object/.test(type))

/** Whether what is there is what the document says. */
export const isCurrent = (): boolean =>
  readFileSync(file, "utf8") === apiSource(servedDocument()) &&
  readFileSync(resourcesFile, "utf8") === resourcesSource(servedDocument())

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(file, apiSource(servedDocument()))
  writeFileSync(resourcesFile, resourcesSource(servedDocument()))
}
