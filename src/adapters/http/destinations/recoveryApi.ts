/** The endpoints that test a webhook endpoint and recover what it missed, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { headerText, text } from "../../../application/destinations/fields.ts"
import { deadStatuses } from "../../../domain/replay/facts.ts"
import { Message } from "../messages/messagesApi.ts"
import { Replay } from "../replays/deadLettersApi.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors } from "../server/endpoints.ts"
import { idParam, optional, Time } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

export const TestRequest = Schema.Struct({
  eventType: optional(headerText(256).annotate({ description: "posthaste.test when left out." }))
}).annotate({ identifier: "TestWebhookEndpoint" })

export const RecoverRequest = Schema.Struct({
  since: Time.annotate({ description: "Ended after this time." }),
  until: optional(Time.annotate({ description: "Ended before this time; until now when left out." })),
  statuses: optional(
    Schema.Array(Schema.Literals(deadStatuses)).check(
      Schema.isMinLength(1),
      Schema.isMaxLength(deadStatuses.length),
      Schema.isUnique()
    )
  ).annotateKey({ description: "Both when left out." }),
  reason: optional(text(500)),
  idempotencyKey: optional(headerText(255))
}).annotate({ identifier: "RecoverWebhookEndpoint" })

export const ReplayMissingRequest = Schema.Struct({
  since: Time.annotate({ description: "Published at this time or later." }),
  reason: optional(text(500)),
  idempotencyKey: optional(headerText(255))
}).annotate({ identifier: "ReplayMissingToWebhookEndpoint" })

const PATH = "/webhook-endpoints/:id"
const error = [problemOf(404), ...bodyErrors] as const

const test = HttpApiEndpoint.post("test", `${PATH}/test`, {
  params: idParam,
  payload: TestRequest,
  success: Message.pipe(HttpApiSchema.status(202)),
  error
}).annotateMerge(
  about("Send the endpoint a test. The message is real and signed, and its body says that it is a test.")
)

const recover = HttpApiEndpoint.post("recover", `${PATH}/recover`, {
  params: idParam,
  payload: RecoverRequest,
  success: Replay.pipe(HttpApiSchema.status(202)),
  error: [problemOf(409), ...error]
}).annotateMerge(
  about("Send the endpoint everything again that ended badly in this time. A replay, as in GET /replays/{id}.")
)

const replayMissing = HttpApiEndpoint.post("replayMissing", `${PATH}/replay-missing`, {
  params: idParam,
  payload: ReplayMissingRequest,
  success: Replay.pipe(HttpApiSchema.status(202)),
  error: [problemOf(409), ...error]
}).annotateMerge(
  about(
    "Send the endpoint the events that it missed. Every event since then that it wants now and never had a message of; a replay, as in GET /replays/{id}."
  )
)

export const recoveryApi = HttpApiGroup.make("recovery")
  .add(test, recover, replayMissing)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Test and recovery of webhook endpoints" }))
