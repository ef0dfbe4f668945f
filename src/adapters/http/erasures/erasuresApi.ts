/** The endpoints of erasures as data: their requests and answers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { erasureFields } from "../../../domain/erasure/facts.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { listOf, Moment, optional, paging, Text } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

export const ErasureRequest = Schema.Struct({
  dossierId: optional(text(256)),
  recipient: optional(text(512)).annotateKey({
    description: "As messages name it in to; a phone number in any spelling."
  }),
  correlationId: optional(text(256)),
  metadata: optional(
    Schema.Record(text(100), Schema.String.check(Schema.isMaxLength(1000))).check(
      Schema.isMaxProperties(1, { message: "must have one entry" }),
      Schema.isMinProperties(1, { message: "must have one entry" })
    )
  ).annotateKey({ description: "One entry that the messages have." }),
  reason: optional(text(500)).annotateKey({ description: "Kept in the audit: name nobody in it." })
}).annotate({ identifier: "ErasureRequest" })

export const Erasure = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  by: Schema.Literals(erasureFields).annotate({
    description: "The field that found the person. Its value is not kept."
  }),
  status: Schema.Literals(["RUNNING", "COMPLETED"]),
  reason: Text,
  messages: Schema.Int.annotate({ description: "How many messages are erased so far." }),
  forgotten: Schema.Int.annotate({
    description:
      "Of these: messages that were removed with their history, because EventStoreDB has it from before its facts were sealed."
  }),
  events: Schema.Int.annotate({ description: "How many events are erased so far." }),
  requestedAt: Moment,
  endedAt: Schema.NullOr(Moment)
}).annotate({ identifier: "Erasure" })

const request = HttpApiEndpoint.post("request", "/erasures", {
  payload: ErasureRequest,
  success: Erasure.pipe(HttpApiSchema.status(202)),
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Erase a person from every message and event that one field finds. What still waits is cancelled.")
)
const list = HttpApiEndpoint.get("list", "/erasures", { query: paging, success: listOf(Erasure) }).annotateMerge(
  about("List erasures, newest first.")
)
const get = HttpApiEndpoint.get("get", "/erasures/:id", { ...byId, success: Erasure }).annotateMerge(
  about("One erasure, and how far it is.")
)

export const erasuresApi = HttpApiGroup.make("erasures")
  .add(request, list, get)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Erasures" }))
