/** The handlers of orgs, for the operator. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Orgs } from "../../../application/ports/Orgs.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { type PageQuery, pageOfAll } from "../server/cursor.ts"
import { answer } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { SetOrg } from "./orgsApi.ts"

const decodeSet = decoderOf(SetOrg)

const list = Effect.fnUntraced(function* (query: PageQuery) {
  return yield* pageOfAll("orgs", query, (yield* Orgs).list, (org) => org)
})

const get = (id: OrgId) => Effect.flatMap(Orgs, (orgs) => orgs.get(id))

const set = Effect.fnUntraced(function* (id: OrgId, request: HttpServerRequest.HttpServerRequest) {
  const { name, suspended, limits, retry } = yield* bodyOf(request, decodeSet)
  const orgs = yield* Orgs
  yield* orgs.set(id, {
    ...{ name: name ?? null, suspended: suspended ?? null },
    ...{ limits: limits ?? {}, retry: retry ?? null }
  })
  return yield* orgs.get(id)
})

export const layer = HttpApiBuilder.group(Api, "orgs", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("set", ({ params, request }) => answer(set(params.id, request)))
)
