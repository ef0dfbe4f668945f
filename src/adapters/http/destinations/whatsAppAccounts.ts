/** Answers what is asked about WhatsApp accounts. Secrets come in here and never leave. */
import { Effect, Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import {
  type WhatsAppAccount,
  type WhatsAppAccountSettings,
  WhatsAppAccounts,
  type WhatsAppSecrets
} from "../../../application/ports/WhatsAppAccounts.ts"
import { moment } from "../messages/messageJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { answer, notFound, numberTaken } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson } from "../server/requestBody.ts"
import { idOf, listed, orNotFound } from "./destinations.ts"
import { ChangeWhatsAppAccount, CreateWhatsAppAccount, defaults } from "./whatsAppAccountsApi.ts"

const decodeCreate = decoderOf(CreateWhatsAppAccount)
const decodeChange = decoderOf(ChangeWhatsAppAccount)

const accountJson = ({ id, orgId, createdAt, updatedAt, ...settings }: WhatsAppAccount) => ({
  id,
  orgId,
  ...settings,
  createdAt: moment(createdAt),
  updatedAt: moment(updatedAt)
})

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const orgId = yield* ActingOrg
  const { phoneNumberId, accessToken, appSecret, verifyToken, retry, ...given } = yield* decoded(
    decodeCreate,
    yield* readJson(request, limits.single)
  )
  const settings: WhatsAppAccountSettings = { retry: retry ?? null, ...defaults, ...chosen(given) }
  const account = yield* (yield* WhatsAppAccounts).create(orgId, phoneNumberId, settings, {
    accessToken: Redacted.make(accessToken),
    appSecret: Redacted.make(appSecret),
    verifyToken: Redacted.make(verifyToken)
  })
  if (account === "NumberTaken") return yield* numberTaken()
  return HttpServerResponse.jsonUnsafe(accountJson(account), {
    status: 201,
    headers: { location: `/api/v1/whatsapp-accounts/${account.id}` }
  })
})

type GivenSettings = Omit<typeof ChangeWhatsAppAccount.Type, "accessToken" | "appSecret" | "verifyToken" | "retry">

/** What was named, null as its default. */
const chosen = (given: GivenSettings): Partial<WhatsAppAccountSettings> =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, value ?? defaults[name as keyof GivenSettings]])
  )

const get = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  return yield* orNotFound(yield* (yield* WhatsAppAccounts).get(orgId, yield* idOf(id)))
})

const change = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const orgId = yield* ActingOrg
  const { accessToken, appSecret, verifyToken, retry, ...given } = yield* decoded(
    decodeChange,
    yield* readJson(request, limits.single)
  )
  const settings = { ...(retry === undefined ? {} : { retry }), ...chosen(given) }
  const secrets: Partial<WhatsAppSecrets> = Object.fromEntries(
    Object.entries({ accessToken, appSecret, verifyToken }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Redacted.make(value)]]
    )
  )
  return accountJson(
    yield* orNotFound(yield* (yield* WhatsAppAccounts).update(orgId, yield* idOf(id), settings, secrets))
  )
})

const setPaused = Effect.fnUntraced(function* (id: string, paused: boolean) {
  const orgId = yield* ActingOrg
  return accountJson(yield* orNotFound(yield* (yield* WhatsAppAccounts).setPaused(orgId, yield* idOf(id), paused)))
})

const remove = Effect.fnUntraced(function* (id: string) {
  const orgId = yield* ActingOrg
  if (!(yield* (yield* WhatsAppAccounts).remove(orgId, yield* idOf(id)))) yield* notFound()
})

export const layer = HttpApiBuilder.group(Api, "whatsAppAccounts", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) =>
      answer(Effect.flatMap(WhatsAppAccounts, ({ list }) => listed("whatsapp-accounts", list, accountJson, query)))
    )
    .handle("get", ({ params }) => answer(Effect.map(get(params.id), accountJson)))
    .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
    .handle("remove", ({ params }) => answer(remove(params.id)))
    .handle("pause", ({ params }) => answer(setPaused(params.id, true)))
    .handle("resume", ({ params }) => answer(setPaused(params.id, false)))
)
