/** The catalogue of event types. */
import { Effect, Result, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { changeEventType, createEventType } from "../../../application/events/catalogue.ts"
import {
  type EventTypeDefinition,
  EventTypes,
  type EventType as StoredType
} from "../../../application/ports/EventTypes.ts"
import { text } from "../../../application/ports/fields.ts"
import { EventType } from "../../api/eventRequests.ts"
import { optional } from "../../api/fields.ts"
import type { JsonText } from "../../api/jsonText.ts"
import { rawMember } from "../../api/rawJson.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, titled } from "../server/endpoints.ts"
import { listOf, Moment, maybe, paging, switchParameter, Text } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, eventTypeTaken, invalidSchema, orNotFound, problemOf } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson } from "../server/requestBody.ts"

const example = {
  description: "An order was paid",
  schema: { type: "object", required: ["order"] },
  example: { order: 4711 }
}

const definition = {
  description: optional(text(1000), "What it means, for people."),
  schema: optional(
    Schema.Record(Schema.String, Schema.Unknown),
    "JSON Schema, draft 2020-12, of an event's data. $ref leads to parts of this schema; patterns are RE2's; format is a note."
  ),
  example: maybe(Schema.Unknown, "Data of an event, as it may come."),
  enforce: optional(Schema.Boolean, "Whether an event of this type that does not fit the schema is refused.")
}

export const ChangeEventType = Schema.Struct(definition).annotate({
  identifier: "ChangeEventType",
  examples: [example]
})

export const CreateEventType = Schema.Struct({
  name: EventType.annotateKey({ description: "The type, such as order.paid." }),
  ...definition
}).annotate({ identifier: "CreateEventType", examples: [{ name: "order.paid", ...example }] })

const EventTypeAnswer = Schema.Struct({
  name: Schema.String,
  orgId: Schema.String,
  description: Text,
  schema: Schema.Unknown,
  example: Schema.Unknown,
  enforce: Schema.Boolean,
  archived: Schema.Boolean,
  version: Schema.Int,
  createdAt: Moment,
  updatedAt: Moment
}).annotate({ identifier: "EventType" })

const PATH = "/event-types"

const byName = {
  params: { name: Schema.String.annotateKey({ description: "The type, such as order.paid." }) },
  error: problemOf(404)
}

export const eventTypesApi = HttpApiGroup.make("eventTypes")
  .add(
    HttpApiEndpoint.post("create", PATH, {
      payload: CreateEventType,
      success: EventTypeAnswer.pipe(HttpApiSchema.status(201)),
      error: [problemOf(409), problemOf(422), ...bodyErrors]
    }).annotateMerge(about("endpoints:write", "Add a type to the org's catalogue of event types.")),
    HttpApiEndpoint.get("list", PATH, {
      query: { ...paging, archived: switchParameter("The archived ones, in place of the others.") },
      success: listOf(EventTypeAnswer)
    }).annotateMerge(about("endpoints:read", "List the org's event types by name; archived ones with archived=true.")),
    HttpApiEndpoint.get("get", `${PATH}/:name`, { ...byName, success: EventTypeAnswer }).annotateMerge(
      about("endpoints:read", "One event type, also an archived one.")
    ),
    HttpApiEndpoint.put("change", `${PATH}/:name`, {
      params: byName.params,
      payload: ChangeEventType,
      success: EventTypeAnswer,
      error: [problemOf(404), problemOf(422), ...bodyErrors]
    }).annotateMerge(
      about("endpoints:write", "Give an event type another definition, as a whole. It brings an archived type back.")
    ),
    HttpApiEndpoint.delete("archive", `${PATH}/:name`, { ...byName, success: HttpApiSchema.NoContent }).annotateMerge(
      about("endpoints:write", "Archive an event type. Its name stays taken, and what was published stays.")
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Event types", "The org's catalogue of event types and their schemas."))

const decodeCreate = decoderOf(CreateEventType)

const decodeChange = decoderOf(ChangeEventType)

type Request = HttpServerRequest.HttpServerRequest

/** Keeps schema and example as they were written; null for none. */
const definitionOf = (request: typeof ChangeEventType.Type, { text }: JsonText): EventTypeDefinition => ({
  description: request.description ?? null,
  schema: request.schema == null ? null : rawMember(text, "schema"),
  example: request.example == null ? null : rawMember(text, "example"),
  enforce: request.enforce ?? false
})

const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text))

const shown = ({ id: _, schema, example, ...type }: StoredType) => ({
  ...type,
  schema: parsed(schema),
  example: parsed(example)
})

const create = Effect.fnUntraced(function* (request: Request) {
  const orgId = yield* ActingOrg
  const json = yield* readJson(request, limits.single)
  const given = yield* decoded(decodeCreate, json)
  const made = yield* createEventType(orgId, given.name, definitionOf(given, json))
  if (Result.isFailure(made)) return yield* invalidSchema(made.failure)
  if (made.success === "Taken") return yield* eventTypeTaken()
  return created(`/event-types/${encodeURIComponent(given.name)}`, shown(made.success))
})

const change = Effect.fnUntraced(function* (request: Request, name: string) {
  const orgId = yield* ActingOrg
  const json = yield* readJson(request, limits.single)
  const given = yield* decoded(decodeChange, json)
  const changed = yield* orNotFound(yield* changeEventType(orgId, name, definitionOf(given, json)))
  return Result.isFailure(changed) ? yield* invalidSchema(changed.failure) : shown(changed.success)
})

const get = Effect.fnUntraced(function* (name: string) {
  return shown(yield* orNotFound(yield* (yield* EventTypes).get(yield* ActingOrg, name)))
})

const list = Effect.fnUntraced(function* ({ archived, ...query }: PageQuery & { readonly archived?: string }) {
  const types = yield* EventTypes
  return yield* pageOf("event-types", query, (orgId, page) => types.list(orgId, archived === "true", page), {
    of: EventTypeAnswer,
    json: shown
  })
})

const archive = Effect.fnUntraced(function* (name: string) {
  yield* orNotFound(yield* (yield* EventTypes).archive(yield* ActingOrg, name))
})

export const layer = HttpApiBuilder.group(base.add(eventTypesApi), "eventTypes", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.name)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.name)))
    .handle("archive", ({ params }) => answer(archive(params.name)))
)
