/** The endpoints of the catalogue of event types as data: their requests and answers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { EventType } from "../../api/eventRequests.ts"
import { optional } from "../../api/fields.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors } from "../server/endpoints.ts"
import { listOf, Moment, paging, Text } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

const definition = {
  description: optional(text(1000)),
  schema: optional(
    Schema.Record(Schema.String, Schema.Unknown).annotate({
      description:
        "JSON Schema, draft 2020-12, of an event's data. $ref leads to parts of this schema; patterns are RE2's; format is a note."
    })
  ),
  example: Schema.optionalKey(Schema.Unknown.annotate({ description: "Data of an event, as it may come." })),
  enforce: optional(
    Schema.Boolean.annotate({ description: "Whether an event of this type that does not fit the schema is refused." })
  )
}

export const ChangeEventType = Schema.Struct(definition).annotate({ identifier: "ChangeEventType" })
export const CreateEventType = Schema.Struct({ name: EventType, ...definition }).annotate({
  identifier: "CreateEventType"
})

export const EventTypeAnswer = Schema.Struct({
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
const byName = { params: { name: Schema.String }, error: problemOf(404) }

const create = HttpApiEndpoint.post("create", PATH, {
  payload: CreateEventType,
  success: EventTypeAnswer.pipe(HttpApiSchema.status(201)),
  error: [problemOf(409), problemOf(422), ...bodyErrors]
}).annotateMerge(about("Add a type to the org's catalogue of event types."))

const list = HttpApiEndpoint.get("list", PATH, {
  query: { ...paging, archived: Schema.optionalKey(Schema.Literals(["true", "false"])) },
  success: listOf(EventTypeAnswer)
}).annotateMerge(about("List the org's event types by name; archived ones with archived=true."))

const get = HttpApiEndpoint.get("get", `${PATH}/:name`, { ...byName, success: EventTypeAnswer }).annotateMerge(
  about("One event type, also an archived one.")
)

const change = HttpApiEndpoint.put("change", `${PATH}/:name`, {
  params: byName.params,
  payload: ChangeEventType,
  success: EventTypeAnswer,
  error: [problemOf(404), problemOf(422), ...bodyErrors]
}).annotateMerge(about("Give an event type another definition, as a whole. It brings an archived type back."))

const archive = HttpApiEndpoint.delete("archive", `${PATH}/:name`, {
  ...byName,
  success: HttpApiSchema.NoContent
}).annotateMerge(about("Archive an event type. Its name stays taken, and what was published stays."))

export const eventTypesApi = HttpApiGroup.make("eventTypes")
  .add(create, list, get, change, archive)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Event types" }))
