/** What can be asked about alert targets, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { between, text } from "../../../application/destinations/fields.ts"
import { alertTargetTypes } from "../../../application/ports/Destinations.ts"
import { alertEvents, severities } from "../../../domain/alert/alert.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, listOf, Moment, optional, paging } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

const url = text(2048)
const events = Schema.Array(Schema.Literals(alertEvents))
  .check(Schema.isMinLength(1), Schema.isMaxLength(alertEvents.length), Schema.isUnique())
  .annotate({
    description:
      "What to be told. circuit: it opened, it closed. deadLetter: the first of a destination, then none of it for an hour. oldestDue: a due message waits longer than oldestDueSeconds, and that this is over. disabled: a destination was disabled. Left out: all."
  })
const oldestDueSeconds = between(1, 604_800)
const severity = Schema.Literals(severities).annotate({ description: "Of all events. Left out, each has its own." })
const routingKey = Schema.String.annotate({
  description: "The integration key of an Events API v2 integration. Stored encrypted, never shown."
})

const common = {
  events: optional(events),
  oldestDueSeconds: optional(oldestDueSeconds),
  description: optional(text(500))
}

export const CreateAlertTarget = Schema.Union([
  Schema.Struct({
    type: Schema.tag("webhook"),
    url,
    secret: Schema.optionalKey(
      Schema.String.annotate({ description: "whsec_ and base64 of 24 to 64 bytes; made for you when left out." })
    ),
    ...common
  }).annotate({ identifier: "CreateWebhookAlertTarget" }),
  Schema.Struct({
    type: Schema.tag("pagerduty"),
    routingKey,
    url: optional(url),
    severity: optional(severity),
    ...common
  }).annotate({ identifier: "CreatePagerDutyAlertTarget" })
])

/** What is left out stays as it is; null puts a field back to its default. */
export const ChangeAlertTarget = Schema.Struct({
  url: optional(url),
  routingKey: Schema.optionalKey(routingKey),
  severity: optional(severity),
  ...common
}).annotate({ identifier: "ChangeAlertTarget" })

const fields = {
  id: Schema.String.annotate({
    description: "Also the id of the webhook endpoint or HTTP target that its alerts are sent to."
  }),
  orgId: Schema.String,
  type: Schema.Literals(alertTargetTypes),
  url: Schema.NullOr(Schema.String),
  events,
  oldestDueSeconds: Schema.NullOr(oldestDueSeconds),
  severity: Schema.NullOr(severity),
  description: Schema.NullOr(Schema.String),
  createdAt: Moment,
  updatedAt: Moment
}
export const AlertTarget = Schema.Struct(fields).annotate({ identifier: "AlertTarget" })
const NewAlertTarget = Schema.Struct({
  ...fields,
  secret: Schema.optionalKey(Schema.String.annotate({ description: "Of a webhook. Shown this once." }))
}).annotate({ identifier: "NewAlertTarget" })

const Test = Schema.Struct({
  messageIds: Schema.Array(Schema.String).annotate({ description: "Of the messages that bring the test." })
}).annotate({ identifier: "AlertTest" })

const PATH = "/alert-targets"

const create = HttpApiEndpoint.post("create", PATH, {
  payload: CreateAlertTarget,
  success: NewAlertTarget.pipe(HttpApiSchema.status(201)),
  error: bodyErrors
}).annotateMerge(about("Add a target for the org's alerts. A webhook's secret is shown in this answer only."))

const list = HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(AlertTarget) }).annotateMerge(
  about("List the org's alert targets.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: AlertTarget }).annotateMerge(
  about("One alert target.")
)

const change = HttpApiEndpoint.patch("change", `${PATH}/:id`, {
  params: idParam,
  payload: ChangeAlertTarget,
  success: AlertTarget,
  error: [problemOf(404), problemOf(422), ...bodyErrors]
}).annotateMerge(
  about(
    "Change an alert target. PagerDuty's routing key is needed again, else 422, when the URL leads to another place."
  )
)

const remove = HttpApiEndpoint.delete("remove", `${PATH}/:id`, {
  ...byId,
  success: HttpApiSchema.NoContent
}).annotateMerge(about("Remove an alert target, its destination and its secret."))

const test = HttpApiEndpoint.post("test", `${PATH}/:id/test`, {
  ...byId,
  success: Test.pipe(HttpApiSchema.status(202))
}).annotateMerge(about("Send a test alert, and that it is over."))

export const alertTargetsApi = HttpApiGroup.make("alertTargets")
  .add(create, list, get, change, remove, test)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Alert targets" }))
