/**
 * `npm run sdk:types`: makes `sdk/src/api.ts`, the types and the table of routes of the client, from the OpenAPI document
 * of the service. test/sdk/types.test.ts makes them again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { apiWith } from "../src/adapters/http/server/Api.ts"
import { Channels } from "../src/application/ports/Channels.ts"
import * as AllChannels from "../src/setup/channels.ts"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
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
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<{
    readonly $ref?: string
    readonly name: string
    readonly in: string
    readonly required?: boolean
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

/** Whether what is there is what the document says. */
export const isCurrent = (): boolean => readFileSync(file, "utf8") === apiSource(servedDocument())

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writeFileSync(file, apiSource(servedDocument()))
