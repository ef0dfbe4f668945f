/** The handlers of API keys, for the operator. A key is shown once: in the answer that created it. */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ApiKeys } from "../../../application/ports/ApiKeys.ts"
import { isUuid, type OrgId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { onePage } from "../server/cursor.ts"
import { answer, notFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { generateKey, hashOf, storedHash } from "./apiKey.ts"
import { CreateKey } from "./apiKeysApi.ts"

const decodeCreate = decoderOf(CreateKey)

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { orgId, name } = yield* bodyOf(request, decodeCreate)
  const key = generateKey()
  const stored = yield* (yield* ApiKeys).create(orgId, name, storedHash(hashOf(key)))
  return HttpServerResponse.jsonUnsafe({ ...stored, key }, { status: 201 })
})

const list = Effect.fnUntraced(function* (orgId: OrgId | null) {
  return onePage(yield* (yield* ApiKeys).list(orgId))
})

const revoke = Effect.fnUntraced(function* (id: string) {
  if (!isUuid(id) || !(yield* (yield* ApiKeys).revoke(id))) yield* notFound()
})

export const layer = HttpApiBuilder.group(Api, "apiKeys", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query.orgId ?? null)))
    .handle("revoke", ({ params }) => answer(revoke(params.id)))
)
