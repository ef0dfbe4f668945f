/** Answers what is asked about alert targets. Keys and secrets come in here; a webhook's secret leaves once. */
import { Effect, identity, Redacted, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import {
  changeAlertTarget,
  createAlertTarget,
  listAlertTargets,
  readAlertTarget,
  removeAlertTarget,
  testAlertTarget
} from "../../../application/alerts/alertTargets.ts"
import { alertTargetTypes } from "../../../application/ports/Destinations.ts"
import { destinationIdOf } from "../destinations/destinations.ts"
import { admitDestination } from "../orgs/admit.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, judged, notFound, orNotFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { AlertTarget, ChangeAlertTarget, CreateAlertTarget } from "./alertTargetsApi.ts"

const decodeAnyType = decoderOf(CreateAlertTarget)
const isObject = (value: unknown): value is { readonly type?: unknown } => typeof value === "object" && value !== null
const isType = (value: unknown): boolean => alertTargetTypes.some((type) => type === value)

/** A union can't say of which type a value should be that is of none. */
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

export const layer = HttpApiBuilder.group(Api, "alertTargets", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
    .handle("remove", ({ params }) => answer(remove(params.id)))
    .handle("test", ({ params }) => answer(test(params.id)))
)
