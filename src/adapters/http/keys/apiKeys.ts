/** The handlers of API keys. A key is shown once: in the answer that created it. */
import { DateTime, Effect, identity } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ApiKeys } from "../../../application/ports/ApiKeys.ts"
import { isUuid, type OrgId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { ManagingKey } from "../server/auth.ts"
import { type PageQuery, pageOfAll, partOf } from "../server/listPages.ts"
import { answer, forbidden, invalidFields, notFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { generateKey, hashOf, prefixOf, storedHash } from "./apiKey.ts"
import { CreateKey, Key } from "./apiKeysApi.ts"
import { widerThan } from "./widerThan.ts"

const decodeCreate = decoderOf(CreateKey)

/** The org that a request is about: an org's key can name its own only. */
const orgOf = Effect.fnUntraced(function* (named: OrgId | null) {
  const own = (yield* ManagingKey)?.orgId ?? null
  if (own !== null && named !== null && named !== own) {
    return yield* forbidden("This key manages the keys of its own org.", [
      { field: "orgId", reason: "must be its own" }
    ])
  }
  return own ?? named
})

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { orgId: named, name, scopes, expiresAt, networks, limits } = yield* bodyOf(request, decodeCreate)
  const orgId = yield* orgOf(named ?? null)
  const faults = [
    ...(orgId === null ? [{ field: "orgId", reason: "is required" }] : []),
    ...(expiresAt != null && DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
      ? [{ field: "expiresAt", reason: "must lie in the future" }]
      : [])
  ]
  if (orgId === null || faults.length > 0) return yield* invalidFields(faults)
  const key = generateKey()
  const terms = {
    name,
    scopes: scopes == null ? null : [...new Set(scopes)],
    expiresAt: expiresAt ?? null,
    networks: networks ?? null,
    limits: limits ?? {},
    prefix: prefixOf(key)
  }
  const manager = yield* ManagingKey
  const wider = manager === null ? [] : widerThan(manager, terms)
  if (wider.length > 0) return yield* forbidden("A key can't make one that may more than itself.", wider)
  const stored = yield* (yield* ApiKeys).create(orgId, terms, storedHash(hashOf(key)))
  return HttpServerResponse.jsonUnsafe({ ...stored, key }, { status: 201 })
})

const list = Effect.fnUntraced(function* ({
  orgId: named,
  ...query
}: PageQuery & { readonly orgId?: OrgId | undefined }) {
  const orgId = yield* orgOf(named ?? null)
  const keys = yield* ApiKeys
  const page = (part: Parameters<typeof partOf>[1]) => Effect.map(keys.list(orgId), (all) => partOf(all, part))
  return yield* pageOfAll("api-keys", query, page, { of: Key, json: identity })
})

const revoke = Effect.fnUntraced(function* (id: string) {
  const own = (yield* ManagingKey)?.orgId ?? null
  if (!isUuid(id) || !(yield* (yield* ApiKeys).revoke(id, own))) yield* notFound()
})

export const layer = HttpApiBuilder.group(Api, "apiKeys", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("revoke", ({ params }) => answer(revoke(params.id)))
)
