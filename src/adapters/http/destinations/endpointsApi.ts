/** What can be asked about webhook endpoints, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OrgAccess } from "../server/auth.ts"
import {
  destinationDefaults,
  headerText,
  idParam,
  listOf,
  MaxInFlight,
  Moment,
  OnDeadLetter,
  optional,
  paging,
  RateLimit,
  Retry,
  TimeoutMs,
  text
} from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

const url = text(2048)
const eventTypes = Schema.Array(headerText(256)).check(Schema.isMinLength(1), Schema.isMaxLength(100))
const description = text(500)
const signature = Schema.Literals(["standard", "legacy"])
const headers = Schema.Record(Schema.String, Schema.String)

export const defaults = { ...destinationDefaults, signature: "standard" } as const

export const CreateEndpoint = Schema.Struct({
  url,
  eventTypes: optional(eventTypes),
  description: optional(description),
  secret: Schema.optionalKey(
    Schema.String.annotate({ description: "whsec_ and base64 of 24 to 64 bytes; made for you when left out." })
  ),
  signature: optional(signature),
  retry: optional(Retry),
  rateLimit: optional(RateLimit),
  maxInFlight: optional(MaxInFlight),
  timeoutMs: optional(TimeoutMs),
  onDeadLetter: optional(OnDeadLetter),
  headers: optional(headers)
}).annotate({ identifier: "CreateEndpoint" })

/** What is left out stays as it is; null puts a field back to its default. */
export const ChangeEndpoint = Schema.Struct({
  url: Schema.optionalKey(url),
  eventTypes: optional(eventTypes),
  description: optional(description),
  signature: optional(signature),
  retry: optional(Retry),
  rateLimit: optional(RateLimit),
  maxInFlight: optional(MaxInFlight),
  timeoutMs: optional(TimeoutMs),
  onDeadLetter: optional(OnDeadLetter),
  headers: optional(headers)
}).annotate({ identifier: "ChangeEndpoint" })

const fields = {
  id: Schema.String,
  orgId: Schema.String,
  url: Schema.String,
  eventTypes: Schema.NullOr(Schema.Array(Schema.String)),
  description: Schema.NullOr(Schema.String),
  signature,
  retry: Schema.NullOr(Retry),
  rateLimit: Schema.NullOr(RateLimit),
  maxInFlight: Schema.Int,
  timeoutMs: Schema.Int,
  onDeadLetter: OnDeadLetter,
  headers,
  paused: Schema.Boolean.annotate({ description: "Nothing is sent to it; what is accepted for it waits." }),
  version: Schema.Int,
  createdAt: Moment,
  updatedAt: Moment
}
const Endpoint = Schema.Struct(fields).annotate({ identifier: "WebhookEndpoint" })
const NewEndpoint = Schema.Struct({
  ...fields,
  secret: Schema.String.annotate({ description: "Shown this once." })
}).annotate({ identifier: "NewWebhookEndpoint" })

const bodyErrors = [problemOf(413), problemOf(415)]
const about = (summary: string) => OpenApi.annotations({ summary })
const PATH = "/webhook-endpoints"

const create = HttpApiEndpoint.post("create", PATH, {
  payload: CreateEndpoint,
  success: NewEndpoint.pipe(HttpApiSchema.status(201)),
  error: bodyErrors
}).annotateMerge(about("Add a webhook endpoint. Its signing secret is shown in this answer only."))

const list = HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(Endpoint) }).annotateMerge(
  about("List the org's webhook endpoints.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, {
  params: idParam,
  success: Endpoint,
  error: problemOf(404)
}).annotateMerge(about("One webhook endpoint."))

const change = HttpApiEndpoint.patch("change", `${PATH}/:id`, {
  params: idParam,
  payload: ChangeEndpoint,
  success: Endpoint,
  error: [problemOf(404), ...bodyErrors]
}).annotateMerge(about("Change a webhook endpoint. Changes apply from the next attempt."))

const remove = HttpApiEndpoint.delete("remove", `${PATH}/:id`, {
  params: idParam,
  success: HttpApiSchema.NoContent,
  error: problemOf(404)
}).annotateMerge(about("Remove a webhook endpoint."))

const command = { params: idParam, success: Endpoint, error: problemOf(404) }
const pause = HttpApiEndpoint.post("pause", `${PATH}/:id/pause`, command).annotateMerge(
  about("Send nothing to a webhook endpoint until it is resumed. Its messages wait.")
)
const resume = HttpApiEndpoint.post("resume", `${PATH}/:id/resume`, command).annotateMerge(
  about("Send to a webhook endpoint again, beginning with what has waited.")
)

const RETRY_PATH = `${PATH}/:id/retry-config` as const

const getRetry = HttpApiEndpoint.get("getRetry", RETRY_PATH, {
  params: idParam,
  success: Retry,
  error: problemOf(404)
}).annotateMerge(about("The retry policy that applies to the endpoint: its own, or the webhook default."))

const putRetry = HttpApiEndpoint.put("putRetry", RETRY_PATH, {
  params: idParam,
  payload: Retry,
  success: Retry,
  error: [problemOf(404), ...bodyErrors]
}).annotateMerge(about("Give the endpoint a retry policy of its own. It applies to messages accepted from now on."))

const removeRetry = HttpApiEndpoint.delete("removeRetry", RETRY_PATH, {
  params: idParam,
  success: HttpApiSchema.NoContent,
  error: problemOf(404)
}).annotateMerge(about("Return the endpoint to the webhook default."))

export const endpointsApi = HttpApiGroup.make("webhookEndpoints")
  .add(create, list, get, change, remove, pause, resume, getRetry, putRetry, removeRetry)
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(OpenApi.annotations({ title: "Webhook endpoints" }))
