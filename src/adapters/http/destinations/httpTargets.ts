/** Answers what is asked about HTTP targets. Secrets come in here and never leave. */
import { Effect, Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type HttpTargetDraft, HttpTargetPolicy } from "../../../application/ports/HttpTargetPolicy.ts"
import { type HttpTarget, type HttpTargetSettings, HttpTargets } from "../../../application/ports/HttpTargets.ts"
import { moment } from "../messages/messageJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { answer, invalidFields, notFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson } from "../server/requestBody.ts"
import { idOf, listed, orNotFound } from "./destinations.ts"
import { ChangeHttpTarget, CreateHttpTarget, defaults } from "./httpTargetsApi.ts"

const decodeCreate = decoderOf(CreateHttpTarget)
const decodeChange = decoderOf(ChangeHttpTarget)

const targetJson = ({ id, orgId, createdAt, updatedAt, ...settings }: HttpTarget) => ({
  id,
  orgId,
  ...settings,
  createdAt: moment(createdAt),
  updatedAt: moment(updatedAt)
})

type GivenSecrets = Readonly<Record<string, string | null>>

const SECRETS_MAX = 20

/** What the policy has against the target as it would be with these secrets. */
const checked = Effect.fnUntraced(function* (draft: HttpTargetDraft, secrets: GivenSecrets) {
  const policy = yield* HttpTargetPolicy
  const faults = [
    ...policy.faultsOf(draft),
    ...Object.entries(secrets).flatMap(([name, value]) => {
      const reason = value === null ? null : policy.checkSecret(name, value)
      return reason === null ? [] : [{ field: `secrets.${name}`, reason }]
    }),
    ...(draft.secretNames.length > SECRETS_MAX ? [{ field: "secrets", reason: `at most ${SECRETS_MAX} secrets` }] : [])
  ]
  if (faults.length > 0) yield* invalidFields(faults)
})

const redacted = (value: string | null) => (value === null ? null : Redacted.make(value))

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const orgId = yield* ActingOrg
  const { secrets = {}, ...given } = yield* decoded(decodeCreate, yield* readJson(request, limits.single))
  const settings: HttpTargetSettings = {
    url: given.url,
    method: given.method ?? defaults.method,
    headers: given.headers ?? {},
    bodyFields: given.bodyFields ?? {},
    idempotency: given.idempotency ?? defaults.idempotency,
    reconcile: given.reconcile ?? null,
    retry: given.retry ?? null,
    rateLimit: given.rateLimit ?? null,
    maxInFlight: given.maxInFlight ?? defaults.maxInFlight,
    timeoutMs: given.timeoutMs ?? defaults.timeoutMs,
    onDeadLetter: given.onDeadLetter ?? defaults.onDeadLetter
  }
  yield* checked({ ...settings, secretNames: Object.keys(secrets) }, secrets)
  const sealed = Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, Redacted.make(value)]))
  const target = yield* (yield* HttpTargets).create(orgId, settings, sealed)
  return HttpServerResponse.jsonUnsafe(targetJson(target), {
    status: 201,
    headers: { location: `/api/v1/http-targets/${target.id}` }
  })
})

const get = Effect.fnUntraced(function* (text: string) {
  const orgId = yield* ActingOrg
  return yield* orNotFound(yield* (yield* HttpTargets).get(orgId, yield* idOf(text)))
})

const change = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const { secrets = {}, ...given } = yield* decoded(decodeChange, yield* readJson(request, limits.single))
  const before = yield* get(id)
  const settings = changeOf(given)
  const secretNames = [...new Set([...before.secretNames, ...Object.keys(secrets)])].filter(
    (name) => secrets[name] !== null
  )
  yield* checked({ ...before, ...settings, secretNames }, secrets)
  const sealed = Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, redacted(value)]))
  return targetJson(yield* orNotFound(yield* (yield* HttpTargets).update(before.orgId, before.id, settings, sealed)))
})

/** Only what was named changes; null means the default. */
const changeOf = (given: Omit<typeof ChangeHttpTarget.Type, "secrets">): Partial<HttpTargetSettings> => {
  const { method, headers, bodyFields, idempotency, maxInFlight, timeoutMs, onDeadLetter, ...others } = given
  return {
    ...others,
    ...(method === undefined ? {} : { method: method ?? defaults.method }),
    ...(headers === undefined ? {} : { headers: headers ?? {} }),
    ...(bodyFields === undefined ? {} : { bodyFields: bodyFields ?? {} }),
    ...(idempotency === undefined ? {} : { idempotency: idempotency ?? defaults.idempotency }),
    ...(maxInFlight === undefined ? {} : { maxInFlight: maxInFlight ?? defaults.maxInFlight }),
    ...(timeoutMs === undefined ? {} : { timeoutMs: timeoutMs ?? defaults.timeoutMs }),
    ...(onDeadLetter === undefined ? {} : { onDeadLetter: onDeadLetter ?? defaults.onDeadLetter })
  }
}

const remove = Effect.fnUntraced(function* (text: string) {
  const orgId = yield* ActingOrg
  if (!(yield* (yield* HttpTargets).remove(orgId, yield* idOf(text)))) yield* notFound()
})

export const layer = HttpApiBuilder.group(Api, "httpTargets", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) =>
      answer(Effect.flatMap(HttpTargets, ({ list }) => listed("http-targets", list, targetJson, query)))
    )
    .handle("get", ({ params }) => answer(Effect.map(get(params.id), targetJson)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
    .handle("remove", ({ params }) => answer(remove(params.id)))
)
