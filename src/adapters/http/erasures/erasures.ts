/** The resource of erasures. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { requestErasure } from "../../../application/erasures/erasures.ts"
import { Erasures, type Erasure as ErasureView } from "../../../application/ports/Erasures.ts"
import { text } from "../../../application/ports/fields.ts"
import { erasureFields } from "../../../domain/erasure/facts.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { listOf, Moment, needsOneOf, optional, paging, Text } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, invalidFields, orNotFound, problemOf } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"

export const ErasureRequest = Schema.Struct({
  dossierId: optional(text(256), "Everything of this dossier."),
  recipient: optional(text(512), "As messages name it in to; a phone number in any spelling."),
  correlationId: optional(text(256), "Everything with this correlation id."),
  metadata: optional(
    Schema.Record(text(100), Schema.String.check(Schema.isMaxLength(1000))).check(
      Schema.isMaxProperties(1, { message: "must have one entry" }),
      Schema.isMinProperties(1, { message: "must have one entry" })
    ),
    "One entry that the messages have."
  ),
  reason: optional(text(500), "Kept in the audit: name nobody in it.")
})
  .check(needsOneOf("dossierId", "recipient", "correlationId", "metadata"))
  .annotate({ identifier: "ErasureRequest", examples: [{ dossierId: "case-2026-17", reason: "on request" }] })

export const Erasure = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  by: Schema.Literals(erasureFields).annotate({
    description: "The field that found the person. Its value is not kept."
  }),
  status: Schema.Literals(["RUNNING", "COMPLETED"]),
  reason: Text,
  messages: Schema.Int.annotate({ description: "How many messages are erased so far." }),
  events: Schema.Int.annotate({ description: "How many events are erased so far." }),
  requestedAt: Moment,
  endedAt: Schema.NullOr(Moment)
}).annotate({ identifier: "Erasure" })

export const erasuresApi = HttpApiGroup.make("erasures")
  .add(
    HttpApiEndpoint.post("request", "/erasures", {
      payload: ErasureRequest,
      success: Erasure.pipe(HttpApiSchema.status(202)),
      error: [problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about(
        "erasures:write",
        "Erase a person from every message and event that one field finds. What still waits is cancelled."
      )
    ),
    HttpApiEndpoint.get("list", "/erasures", { query: paging, success: listOf(Erasure) }).annotateMerge(
      about("erasures:write", "List erasures, newest first.")
    ),
    HttpApiEndpoint.get("get", "/erasures/:id", { ...byId, success: Erasure }).annotateMerge(
      about("erasures:write", "One erasure, and how far it is.")
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Erasures", "A person is erased from messages and events."))

const decode = decoderOf(ErasureRequest)

const shown = (erasure: ErasureView) => ({
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
  return created(`/erasures/${erasure.id}`, shown(erasure), 202)
})

const list = Effect.fnUntraced(function* (query: PageQuery) {
  const { list } = yield* Erasures
  return yield* pageOf("erasures", query, list, { of: Erasure, json: shown })
})

const get = Effect.fnUntraced(function* (id: string) {
  return shown(yield* orNotFound(yield* (yield* Erasures).get(yield* ActingOrg, id)))
})

export const layer = HttpApiBuilder.group(base.add(erasuresApi), "erasures", (handlers) =>
  handlers
    .handleRaw("request", ({ request: given }) => answer(request(given)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
)
