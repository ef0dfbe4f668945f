/**
 * Adds to the generated OpenAPI document: one schema in place of its copies, refusals once for all operations, optional
 * bodies, headers of answers, and numbers and lists in the form that generators of clients read.
 */
export interface JsonSchema {
  $ref?: string
  type?: string
  format?: string
  description?: string
  minimum?: number
  maximum?: number
  items?: JsonSchema | boolean
  additionalProperties?: JsonSchema | boolean
  allOf?: ReadonlyArray<JsonSchema>
  prefixItems?: ReadonlyArray<JsonSchema>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Record<string, JsonSchema>
  readonly required?: ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly default?: unknown
  readonly pattern?: string
  readonly minItems?: number
  readonly examples?: ReadonlyArray<unknown>
}

interface Answer {
  description: string
  headers?: Record<string, object>
  readonly content?: Record<string, { schema: JsonSchema }>
}

interface Operation {
  readonly security?: ReadonlyArray<object>
  parameters: Array<{ readonly name?: string; schema?: JsonSchema; description?: string; $ref?: string }>
  readonly requestBody?: {
    required: boolean
    readonly content: Record<string, { readonly schema: JsonSchema; example?: unknown }>
  }
  readonly responses: Record<string, Answer | { readonly $ref: string }>
}

interface Document {
  info: object
  servers: ReadonlyArray<object>
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, JsonSchema>
    readonly securitySchemes: Record<string, object>
    parameters?: Record<string, object>
    responses?: Record<string, Answer>
  }
}

const header = (description: string, type = "string", required = false) => ({ description, required, schema: { type } })

const retryAfter = header("The seconds after which asking again may help.", "integer")

const refusals: Readonly<Record<string, readonly [name: string, description: string, headers?: Answer["headers"]]>> = {
  400: ["Invalid", "The request is not valid."],
  401: [
    "Unauthorized",
    "A valid key or signature is missing.",
    { "WWW-Authenticate": header("Bearer, where a key is missing.") }
  ],
  403: ["Forbidden", "The caller may not do that."],
  404: ["NotFound", "There is no such thing in this org."],
  409: ["Conflict", "The state of the thing, or an idempotency key, does not allow it."],
  410: ["Gone", "The body was erased."],
  413: ["TooLarge", "The body is too large."],
  415: ["UnsupportedMediaType", "The body is not in a form that is read here."],
  422: ["Unfit", "The request does not fit the org's settings or its catalogue of event types."],
  429: ["TooMuch", "The org, the key or the address asks for too much.", { "Retry-After": retryAfter }],
  431: ["HeadersTooLarge", "The headers of the request are larger than 16 KiB."],
  500: ["Internal", "Something went wrong on the side of Posthaste."],
  503: ["Unavailable", "Not available at the moment.", { "Retry-After": retryAfter }]
}

const parameters = {
  OrgId: {
    name: "X-Org-Id",
    in: "header",
    description: "The org that the operator's key acts for. An org's key acts for its own.",
    schema: { type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }
  },
  TraceParent: {
    name: "traceparent",
    in: "header",
    description: "The W3C trace that attempts are linked to.",
    schema: { type: "string" }
  }
}

export const finish = (generated: Record<string, unknown>): Record<string, unknown> => {
  const document = withoutCopies(generated as unknown as Document)
  const { components, paths } = document
  for (const scheme of Object.values(components.securitySchemes)) Object.assign(scheme, { scheme: "bearer" })
  for (const schema of Object.values(components.schemas)) tidy(schema)
  components.parameters = parameters
  components.responses = Object.fromEntries(
    Object.values(refusals).map(([name, description, headers]) => [
      name,
      {
        description,
        ...(headers && { headers }),
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } }
      }
    ])
  )
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) complete(document, path, method, operation)
  }
  document.info = {
    ...document.info,
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    contact: { name: "The maintainers of Posthaste" }
  }
  document.servers = [{ url: "/", description: "The Posthaste that served this document" }]
  return document as unknown as Record<string, unknown>
}

const sends = /\/(messages|events)(\/batch|\/\{id\}\/resend)?$/

const complete = ({ components }: Document, path: string, method: string, operation: Operation): void => {
  for (const parameter of operation.parameters) {
    tidy(parameter.schema!)
    const { description, ...schema } = parameter.schema!
    const isNumber = schema.maximum !== undefined
    Object.assign(parameter, description && { description }, {
      schema: isNumber ? { ...schema, type: "integer" } : schema
    })
  }
  if (path.startsWith("/api/") && operation.security?.length) operation.parameters.push(ref("parameters", "OrgId"))
  if (method === "post" && sends.test(path)) operation.parameters.push(ref("parameters", "TraceParent"))
  const { requestBody, responses } = operation
  if (requestBody !== undefined) {
    const [content] = Object.values(requestBody.content)
    const { schema } = content!
    tidy(schema)
    const { required = [], anyOf, examples } = schema.$ref ? components.schemas[nameIn(schema.$ref)]! : schema
    content!.example = examples?.[0]
    requestBody.required = method !== "post" || required.length > 0 || anyOf !== undefined
  }
  for (const [status, answer] of Object.entries(responses)) {
    if (refusals[status] !== undefined) responses[status] = ref("responses", refusals[status][0])
    else if ("description" in answer) {
      for (const each of Object.values(answer.content ?? {})) tidy(each.schema)
      if (status === "201" || status === "202") answer.headers = { Location: header("The path of what was made.") }
    }
  }
  responses["431"] = ref("responses", "HeadersTooLarge")
}

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

const nameIn = (reference: string): string => reference.split("/").at(-1)!

/** Removes `Problem_1` and the like: the generator copies a schema wherever it is annotated. */
const withoutCopies = (document: Document): Document => {
  const { schemas } = document.components
  const original = (name: string) => name.replace(/_\d+$/, "")
  const copies = Object.keys(schemas).filter((name) => original(name) !== name)
  for (const name of copies) schemas[original(name)] ??= schemas[name]!
  for (const name of copies) delete schemas[name]
  const text = JSON.stringify(document).replace(
    /"#\/components\/schemas\/([^"]+)"/g,
    (_, name: string) => `"#/components/schemas/${original(name)}"`
  )
  return JSON.parse(text) as Document
}

const INT32_MAX = 2 ** 31 - 1

/** Brings a schema and all within it into the form that generators of clients read. */
const tidy = (schema: JsonSchema): void => {
  // The generator writes a field's words and rules beside those of its type.
  const { allOf = [], prefixItems, type } = schema
  const apart = allOf.filter((each) => Object.keys(each).some((key) => key !== "description" && key in schema))
  for (const each of allOf) if (!apart.includes(each)) Object.assign(schema, each)
  if (apart.length > 0) schema.allOf = apart
  else delete schema.allOf
  // A nullable field takes the words of its type.
  const words = schema.anyOf?.length === 2 ? schema.anyOf[0]!.description : undefined
  if (words !== undefined) schema.description ??= words
  if (type === "integer") {
    // No number of this API is negative.
    schema.minimum = Math.max(schema.minimum ?? 0, 0)
    if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
    if ((schema.maximum ?? Number.POSITIVE_INFINITY) > INT32_MAX) schema.format = "int64"
  }
  if (prefixItems !== undefined) {
    schema.items = prefixItems[0]!
    delete schema.prefixItems
  }
  if (type === "array") schema.items ??= {}
  if (type === "object" && schema.properties === undefined) schema.additionalProperties ??= true
  const { items, additionalProperties: others, properties = {}, anyOf = [], oneOf = [] } = schema
  for (const inner of [items, others, ...Object.values(properties), ...anyOf, ...oneOf, ...(schema.allOf ?? [])]) {
    if (typeof inner === "object") tidy(inner)
  }
}
