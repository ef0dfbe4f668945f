/** The resource of alert targets. A webhook's secret leaves once, in the answer that made it. */
import { Effect, identity, Redacted, Result, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import {
  changeAlertTarget,
  createAlertTarget,
  listAlertTargets,
  readAlertTarget,
  removeAlertTarget,
  testAlertTarget
} from "../../../application/alerts/alertTargets.ts"
import { alertTargetTypes } from "../../../application/ports/Destinations.ts"
import { between, text } from "../../../application/ports/fields.ts"
import { alertEvents, severities } from "../../../domain/alert/alert.ts"
import { destinationIdOf } from "../destinations/destinations.ts"
import { admitDestination } from "../orgs/admit.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { idParam, listOf, Moment, optional, paging } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, judged, notFound, orNotFound, problemOf } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"

const url = text(2048).annotate({ description: "The address that alerts are sent to." })

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
  oldestDueSeconds: optional(oldestDueSeconds, "For how long a due message may wait before it raises an alert."),
  description: optional(text(500), "For people.")
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
]).annotate({
  identifier: "CreateAlertTarget",
  examples: [{ type: "webhook", url: "https://ops.example/alerts", events: ["circuit", "deadLetter"] }]
})

/** A field left out stays as it is; null resets it. */
export const ChangeAlertTarget = Schema.Struct({
  url: optional(url),
  routingKey: Schema.optionalKey(routingKey),
  severity: optional(severity),
  ...common
}).annotate({ identifier: "ChangeAlertTarget", examples: [{ oldestDueSeconds: 600 }] })

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

export const alertTargetsApi = HttpApiGroup.make("alertTargets")
  .add(
    HttpApiEndpoint.post("create", PATH, {
      payload: CreateAlertTarget,
      success: NewAlertTarget.pipe(HttpApiSchema.status(201)),
      error: bodyErrors
    }).annotateMerge(
      about("endpoints:write", "Add a target for the org's alerts. A webhook's secret is shown in this answer only.")
    ),
    HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(AlertTarget) }).annotateMerge(
      about("endpoints:read", "List the org's alert targets.")
    ),
    HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: AlertTarget }).annotateMerge(
      about("endpoints:read", "One alert target.")
    ),
    HttpApiEndpoint.patch("change", `${PATH}/:id`, {
      params: idParam,
      payload: ChangeAlertTarget,
      success: AlertTarget,
      error: [problemOf(404), problemOf(422), ...bodyErrors]
    }).annotateMerge(
      about(
        "endpoints:write",
        "Change an alert target. PagerDuty's routing key is needed again, else 422, when the URL leads to another place."
      )
    ),
    HttpApiEndpoint.delete("remove", `${PATH}/:id`, { ...byId, success: HttpApiSchema.NoContent }).annotateMerge(
      about("endpoints:write", "Remove an alert target, its destination and its secret.")
    ),
    HttpApiEndpoint.post("test", `${PATH}/:id/test`, {
      ...byId,
      success: Test.pipe(HttpApiSchema.status(202))
    }).annotateMerge(about("endpoints:write", "Send a test alert, and that it is over."))
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Alert targets", "The places that are told when something is wrong."))

const decodeAnyType = decoderOf(CreateAlertTarget)

const isObject = (value: unknown): value is { readonly type?: unknown } => typeof value === "object" && value !== null

const isType = (value: unknown): boolean => alertTargetTypes.some((type) => type === value)

/** A union can't say which type a value of none should have. */
const decodeCreate: typeof decodeAnyType = (value, path) =>
  isObject(value) && !isType(value.type)
    ? Result.fail([{ field: "type", reason: `must be ${alertTargetTypes.join(" or ")}` }])
    : decodeAnyType(value, path)

const decodeChange = decoderOf(ChangeAlertTarget)

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const orgId = yield* ActingOrg
  const given = yield* bodyOf(request, decodeCreate)
  yield* admitDestination(orgId)
  const { target, secret } = yield* judged(yield* createAlertTarget(orgId, given.type, requestOf(given)))
  return created(`/alert-targets/${target.id}`, { ...target, ...(secret !== null && { secret }) })
})

const requestOf = <Given extends { readonly secret?: string; readonly routingKey?: string }>({
  secret,
  routingKey,
  ...others
}: Given) => ({
  ...others,
  ...(secret !== undefined && { secret: Redacted.make(secret) }),
  ...(routingKey !== undefined && { routingKey: Redacted.make(routingKey) })
})

const list = (query: PageQuery) => pageOf("alert-targets", query, listAlertTargets, { of: AlertTarget, json: identity })

const get = Effect.fnUntraced(function* (id: string) {
  return yield* orNotFound(yield* readAlertTarget(yield* ActingOrg, yield* destinationIdOf(id)))
})

const change = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const orgId = yield* ActingOrg
  const given = yield* bodyOf(request, decodeChange)
  const changed = yield* changeAlertTarget(orgId, yield* destinationIdOf(id), requestOf(given))
  return yield* judged(yield* orNotFound(changed))
})

const remove = Effect.fnUntraced(function* (id: string) {
  if (!(yield* removeAlertTarget(yield* ActingOrg, yield* destinationIdOf(id)))) yield* notFound()
})

const test = Effect.fnUntraced(function* (id: string) {
  return { messageIds: yield* orNotFound(yield* testAlertTarget(yield* ActingOrg, yield* destinationIdOf(id))) }
})

export const layer = HttpApiBuilder.group(base.add(alertTargetsApi), "alertTargets", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
    .handle("remove", ({ params }) => answer(remove(params.id)))
    .handle("test", ({ params }) => answer(test(params.id)))
)
