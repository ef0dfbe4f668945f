/** What can be asked about HTTP targets, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { httpMethods } from "../../../application/ports/HttpTargets.ts"
import { OrgAccess } from "../server/auth.ts"
import {
  destinationDefaults,
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
const method = Schema.Literals(httpMethods)
const headers = Schema.Record(Schema.String, Schema.String).annotate({
  description: "{{name}} within a value stands for the target's secret of that name, as in Bearer {{token}}."
})
const bodyFields = Schema.Record(Schema.String, Schema.String).annotate({
  description:
    "Added to the message's JSON object as it is sent, with {{name}} as in headers; the stored message is without them."
})
const idempotency = Schema.Literals(["header", "none"]).annotate({
  description:
    "header: every try carries the message's id as Idempotency-Key, and the target drops what it has seen. none: it would do the work twice, so a try that may have been taken is never repeated blindly. Either way the id is sent as X-Message-Id."
})
const reconcile = Schema.Struct({ url }).annotate({
  description:
    "Where to ask, with GET, whether a request was taken; {messageId} in the URL stands for the message's id. 2xx: it was. 404: it was not and never will be. Anything else: not known yet."
})

export const defaults = { ...destinationDefaults, method: "POST", idempotency: "header" } as const

const settings = {
  method: optional(method),
  headers: optional(headers),
  bodyFields: optional(bodyFields),
  idempotency: optional(idempotency),
  reconcile: optional(reconcile),
  retry: optional(Retry),
  rateLimit: optional(RateLimit),
  maxInFlight: optional(MaxInFlight),
  timeoutMs: optional(TimeoutMs),
  onDeadLetter: optional(OnDeadLetter)
}

export const CreateHttpTarget = Schema.Struct({
  url,
  ...settings,
  secrets: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.String).annotate({ description: "By name. Stored encrypted, never shown." })
  )
}).annotate({ identifier: "CreateHttpTarget" })

/** What is left out stays as it is; null puts a field back to its default, and removes a secret. */
export const ChangeHttpTarget = Schema.Struct({
  url: Schema.optionalKey(url),
  ...settings,
  secrets: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.NullOr(Schema.String)).annotate({
      description: "By name. Those left out stay; null removes one."
    })
  )
}).annotate({ identifier: "ChangeHttpTarget" })

const HttpTarget = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  url: Schema.String,
  method,
  headers,
  bodyFields,
  secretNames: Schema.Array(Schema.String),
  idempotency,
  reconcile: Schema.NullOr(reconcile),
  retry: Schema.NullOr(Retry),
  rateLimit: Schema.NullOr(RateLimit),
  maxInFlight: Schema.Int,
  timeoutMs: Schema.Int,
  onDeadLetter: OnDeadLetter,
  version: Schema.Int,
  createdAt: Moment,
  updatedAt: Moment
}).annotate({ identifier: "HttpTarget" })

const bodyErrors = [problemOf(413), problemOf(415)]
const about = (summary: string) => OpenApi.annotations({ summary })
const PATH = "/http-targets"

const create = HttpApiEndpoint.post("create", PATH, {
  payload: CreateHttpTarget,
  success: HttpTarget.pipe(HttpApiSchema.status(201)),
  error: bodyErrors
}).annotateMerge(about("Add an HTTP target. Its secrets are named in answers and never shown."))

const list = HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(HttpTarget) }).annotateMerge(
  about("List the org's HTTP targets.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, {
  params: idParam,
  success: HttpTarget,
  error: problemOf(404)
}).annotateMerge(about("One HTTP target."))

const change = HttpApiEndpoint.patch("change", `${PATH}/:id`, {
  params: idParam,
  payload: ChangeHttpTarget,
  success: HttpTarget,
  error: [problemOf(404), ...bodyErrors]
}).annotateMerge(about("Change an HTTP target. Changes apply from the next attempt."))

const remove = HttpApiEndpoint.delete("remove", `${PATH}/:id`, {
  params: idParam,
  success: HttpApiSchema.NoContent,
  error: problemOf(404)
}).annotateMerge(about("Remove an HTTP target and its secrets."))

export const httpTargetsApi = HttpApiGroup.make("httpTargets")
  .add(create, list, get, change, remove)
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(OpenApi.annotations({ title: "HTTP targets" }))
