/** The handlers of erasures. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { requestErasure } from "../../../application/erasures/erasures.ts"
import { type Erasure, Erasures } from "../../../application/ports/Erasures.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, erasureElsewhere, invalidFields, orNotFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { Erasure as ErasureAnswer, ErasureRequest } from "./erasuresApi.ts"

const decode = decoderOf(ErasureRequest)

const shown = (erasure: Erasure) => ({
  ...erasure,
  status: erasure.endedAt === null ? ("RUNNING" as const) : ("COMPLETED" as const)
})

const fields = ["dossierId", "recipient", "correlationId", "metadata"] as const

const request = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { reason, ...person } = yield* bodyOf(request, decode)
  const given = fields.filter((field) => person[field] != null)
  if (given.length !== 1) {
    const reason = given.length === 0 ? `needs one of ${fields.join(", ")}` : "must be the only one to look by"
    return yield* invalidFields((given.length === 0 ? ["body"] : given).map((field) => ({ field, reason })))
  }
  const erasure = yield* requestErasure(yield* ActingOrg, person, reason ?? null)
  if (erasure === "Elsewhere") return yield* erasureElsewhere()
  return created(`/erasures/${erasure.id}`, shown(erasure), 202)
})

const list = Effect.fnUntraced(function* (query: PageQuery) {
  const { list } = yield* Erasures
  return yield* pageOf("erasures", query, list, { of: ErasureAnswer, json: shown })
})

const get = Effect.fnUntraced(function* (id: string) {
  return shown(yield* orNotFound(yield* (yield* Erasures).get(yield* ActingOrg, id)))
})

export const layer = HttpApiBuilder.group(Api, "erasures", (handlers) =>
  handlers
    .handleRaw("request", ({ request: given }) => answer(request(given)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
)
