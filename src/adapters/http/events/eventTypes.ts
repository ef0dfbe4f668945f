/** The handlers of the catalogue of event types. */
import { Effect, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { changeEventType, createEventType } from "../../../application/events/catalogue.ts"
import { type EventType, type EventTypeDefinition, EventTypes } from "../../../application/ports/EventTypes.ts"
import type { JsonText } from "../../api/jsonText.ts"
import { rawMember } from "../../api/rawJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, eventTypeTaken, invalidSchema, orNotFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson } from "../server/requestBody.ts"
import { ChangeEventType, CreateEventType, EventTypeAnswer } from "./eventTypesApi.ts"

const decodeCreate = decoderOf(CreateEventType)
const decodeChange = decoderOf(ChangeEventType)

type Request = HttpServerRequest.HttpServerRequest

/** Schema and example are kept as they were written; null means that there is none. */
const definitionOf = (request: typeof ChangeEventType.Type, { text }: JsonText): EventTypeDefinition => ({
  description: request.description ?? null,
  schema: request.schema == null ? null : rawMember(text, "schema"),
  example: request.example == null ? null : rawMember(text, "example"),
  enforce: request.enforce ?? false
})

const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text))

const shown = ({ id: _, schema, example, ...type }: EventType) => ({
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

export const layer = HttpApiBuilder.group(Api, "eventTypes", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.name)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.name)))
    .handle("archive", ({ params }) => answer(archive(params.name)))
)
