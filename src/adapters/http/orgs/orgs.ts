/** The handlers of orgs, for the operator. */
import { Effect, identity } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Orgs } from "../../../application/ports/Orgs.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { type PageQuery, pageOfAll } from "../server/listPages.ts"
import { answer, invalidFields } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { Org, SetOrg } from "./orgsApi.ts"

const decodeSet = decoderOf(SetOrg)

const list = Effect.fnUntraced(function* (query: PageQuery) {
  return yield* pageOfAll("orgs", query, (yield* Orgs).list, { of: Org, json: identity })
})

const get = (id: OrgId) => Effect.flatMap(Orgs, (orgs) => orgs.get(id))

const set = Effect.fnUntraced(function* (
  id: OrgId,
  request: HttpServerRequest.HttpServerRequest,
  daysMax: number | null
) {
  const { name, suspended, limits, retry, retention } = yield* bodyOf(request, decodeSet)
  const tooLong = Object.entries(retention ?? {}).filter(([, days]) => daysMax !== null && days > daysMax)
  if (tooLong.length > 0) {
    const reason = `must be ${daysMax} at most, as POSTHASTE_RETENTION_MAX_DAYS says`
    return yield* invalidFields(tooLong.map(([kept]) => ({ field: `retention.${kept}`, reason })))
  }
  const orgs = yield* Orgs
  yield* orgs.set(id, {
    ...{ name: name ?? null, suspended: suspended ?? null },
    ...{ limits: limits ?? {}, retry: retry ?? null, retention: retention ?? {} }
  })
  return yield* orgs.get(id)
})

/** `retentionDaysMax`: the most days that an org may be given; null: there is no most. */
export const layerWith = (retentionDaysMax: number | null) =>
  HttpApiBuilder.group(Api, "orgs", (handlers) =>
    handlers
      .handle("list", ({ query }) => answer(list(query)))
      .handle("get", ({ params }) => answer(get(params.id)))
      .handleRaw("set", ({ params, request }) => answer(set(params.id, request, retentionDaysMax)))
  )
