/** Answers what is asked about webhook endpoints. A secret leaves once: in the answer that made it. */
import { Effect, Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Fault } from "../../../application/errors.ts"
import { EndpointPolicy } from "../../../application/ports/EndpointPolicy.ts"
import { type Endpoint, type EndpointSettings, Endpoints } from "../../../application/ports/Endpoints.ts"
import { presets, type RetryPolicy } from "../../../domain/delivery/retry.ts"
import { moment } from "../messages/messageJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { Retry } from "../server/fields.ts"
import { answer, invalidFields, notFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson } from "../server/requestBody.ts"
import { idOf, listed, orNotFound } from "./destinations.ts"
import { ChangeEndpoint, CreateEndpoint, defaults } from "./endpointsApi.ts"

const decodeCreate = decoderOf(CreateEndpoint)
const decodeChange = decoderOf(ChangeEndpoint)
const decodeRetry = decoderOf(Retry)

const endpointJson = ({ id, orgId, createdAt, updatedAt, ...settings }: Endpoint) => ({
  id,
  orgId,
  ...settings,
  createdAt: moment(createdAt),
  updatedAt: moment(updatedAt)
})

/** What the policy has against the fields that were given; nothing is asked about the others. */
const checked = Effect.fnUntraced(function* (given: {
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>> | null
  readonly secret?: string
}) {
  const policy = yield* EndpointPolicy
  const faults: Array<Fault> = []
  const check = (field: string, reason: string | null) => {
    if (reason !== null) faults.push({ field, reason })
  }
  if (given.url !== undefined) check("url", policy.checkUrl(given.url))
  if (given.headers !== undefined && given.headers !== null) check("headers", policy.checkHeaders(given.headers))
  if (given.secret !== undefined) check("secret", policy.checkSecret(Redacted.make(given.secret)))
  if (faults.length > 0) yield* invalidFields(faults)
})

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const orgId = yield* ActingOrg
  const given = yield* decoded(decodeCreate, yield* readJson(request, limits.single))
  yield* checked(given)
  const secret = given.secret === undefined ? (yield* EndpointPolicy).generateSecret() : Redacted.make(given.secret)
  const endpoint = yield* (yield* Endpoints).create(
    orgId,
    {
      url: given.url,
      eventTypes: given.eventTypes ?? null,
      description: given.description ?? null,
      signature: given.signature ?? defaults.signature,
      retry: given.retry ?? null,
      rateLimit: given.rateLimit ?? null,
      maxInFlight: given.maxInFlight ?? defaults.maxInFlight,
      timeoutMs: given.timeoutMs ?? defaults.timeoutMs,
      onDeadLetter: given.onDeadLetter ?? defaults.onDeadLetter,
      headers: given.headers ?? {}
    },
    secret
  )
  return HttpServerResponse.jsonUnsafe(
    { ...endpointJson(endpoint), secret: Redacted.value(secret) },
    { status: 201, headers: { location: `/api/v1/webhook-endpoints/${endpoint.id}` } }
  )
})

const get = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  return yield* orNotFound(yield* (yield* Endpoints).get(orgId, yield* idOf(id)))
})

const update = Effect.fnUntraced(function* (id: string, change: Partial<EndpointSettings>) {
  const orgId = yield* ActingOrg
  return yield* orNotFound(yield* (yield* Endpoints).update(orgId, yield* idOf(id), change))
})

const change = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const given = yield* decoded(decodeChange, yield* readJson(request, limits.single))
  yield* checked(given)
  return endpointJson(yield* update(id, changeOf(given)))
})

/** Only what was named changes; null means the default. */
const changeOf = (given: typeof ChangeEndpoint.Type): Partial<EndpointSettings> => {
  const { signature, maxInFlight, timeoutMs, onDeadLetter, headers, ...others } = given
  return {
    ...others,
    ...(signature === undefined ? {} : { signature: signature ?? defaults.signature }),
    ...(maxInFlight === undefined ? {} : { maxInFlight: maxInFlight ?? defaults.maxInFlight }),
    ...(timeoutMs === undefined ? {} : { timeoutMs: timeoutMs ?? defaults.timeoutMs }),
    ...(onDeadLetter === undefined ? {} : { onDeadLetter: onDeadLetter ?? defaults.onDeadLetter }),
    ...(headers === undefined ? {} : { headers: headers ?? {} })
  }
}

const remove = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  if (!(yield* (yield* Endpoints).remove(orgId, yield* idOf(id)))) yield* notFound()
})

const setPaused = Effect.fnUntraced(function* (id: string, paused: boolean) {
  const orgId = yield* ActingOrg
  return endpointJson(yield* orNotFound(yield* (yield* Endpoints).setPaused(orgId, yield* idOf(id), paused)))
})

const retryOf = ({ retry }: Endpoint): RetryPolicy => retry ?? presets.webhook

const putRetry = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const retry = yield* decoded(decodeRetry, yield* readJson(request, limits.single))
  return retryOf(yield* update(id, { retry }))
})

export const layer = HttpApiBuilder.group(Api, "webhookEndpoints", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) =>
      answer(Effect.flatMap(Endpoints, ({ list }) => listed("webhook-endpoints", list, endpointJson, query)))
    )
    .handle("get", ({ params }) => answer(Effect.map(get(params.id), endpointJson)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
    .handle("remove", ({ params }) => answer(remove(params.id)))
    .handle("pause", ({ params }) => answer(setPaused(params.id, true)))
    .handle("resume", ({ params }) => answer(setPaused(params.id, false)))
    .handle("getRetry", ({ params }) => answer(Effect.map(get(params.id), retryOf)))
    .handleRaw("putRetry", ({ request, params }) => answer(putRetry(request, params.id)))
    .handle("removeRetry", ({ params }) => answer(Effect.asVoid(update(params.id, { retry: null }))))
)
