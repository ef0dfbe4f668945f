/** Tests a webhook endpoint and recovers what it missed. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { readDestination } from "../../../application/destinations/destinations.ts"
import { sendTestMessage } from "../../../application/destinations/testMessage.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { headerText } from "../../../application/ports/fields.ts"
import { requestReplay } from "../../../application/replays/replays.ts"
import { deadStatuses } from "../../../domain/replay/facts.ts"
import { answerTo, ofKey } from "../../api/messageRequests.ts"
import { destinationIdOf } from "../destinations/destinations.ts"
import { Message } from "../messages/messageJson.ts"
import { admitMessages, admitReplay } from "../orgs/admit.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, titled } from "../server/endpoints.ts"
import { idParam, optional, reason, requiredTime, Time } from "../server/fields.ts"
import { answer, created, orNotFound, problemOf, toResponse } from "../server/problem.ts"
import { bodyOf, decoded, decoderOf, limits, readOptionalJson } from "../server/requestBody.ts"
import { Replay, replayJson } from "./deadLetters.ts"

const TestRequest = Schema.Struct({
  eventType: optional(headerText(256), "Send the example of this type; posthaste.test when left out.")
}).annotate({ identifier: "TestWebhookEndpoint", examples: [{}] })

/** The encoded form. */
const since = [{ since: "2026-11-19T09:30:00.000Z" }] as unknown as never

const RecoverRequest = Schema.Struct({
  since: requiredTime("Ended after this time."),
  until: optional(Time, "Ended before this time; until now when left out."),
  statuses: optional(
    Schema.Array(Schema.Literals(deadStatuses)).check(
      Schema.isMinLength(1),
      Schema.isMaxLength(deadStatuses.length),
      Schema.isUnique()
    ),
    "Both when left out."
  ),
  reason,
  idempotencyKey: optional(headerText(255), ofKey)
}).annotate({ identifier: "RecoverWebhookEndpoint", examples: since })

const ReplayMissingRequest = Schema.Struct({
  since: requiredTime("Published at this time or later."),
  reason,
  idempotencyKey: optional(headerText(255), ofKey)
}).annotate({ identifier: "ReplayMissingToWebhookEndpoint", examples: since })

const PATH = "/webhook-endpoints/:id"

const error = [problemOf(404), ...bodyErrors] as const

export const recoveryApi = HttpApiGroup.make("recovery")
  .add(
    HttpApiEndpoint.post("test", `${PATH}/test`, {
      params: idParam,
      payload: TestRequest,
      success: Message.pipe(HttpApiSchema.status(202)),
      error
    }).annotateMerge(
      about(
        "endpoints:write",
        "Send the endpoint a test. The message is real and signed, and its body says that it is a test."
      )
    ),
    HttpApiEndpoint.post("recover", `${PATH}/recover`, {
      params: idParam,
      payload: RecoverRequest,
      success: Replay.pipe(HttpApiSchema.status(202)),
      error: [problemOf(409), ...error]
    }).annotateMerge(
      about(
        "replays:write",
        "Send the endpoint everything again that ended badly in this time. A replay, as in GET /replays/{id}."
      )
    ),
    HttpApiEndpoint.post("replayMissing", `${PATH}/replay-missing`, {
      params: idParam,
      payload: ReplayMissingRequest,
      success: Replay.pipe(HttpApiSchema.status(202)),
      error: [problemOf(409), ...error]
    }).annotateMerge(
      about(
        "replays:write",
        "Send the endpoint the events that it missed. Every event since then that it wants now and never had a message of; a replay, as in GET /replays/{id}."
      )
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Test and recovery of webhook endpoints", "A test message, and what an endpoint missed."))

type Request = HttpServerRequest.HttpServerRequest

const decodeTest = decoderOf(TestRequest)

const decodeRecover = decoderOf(RecoverRequest)

const decodeReplayMissing = decoderOf(ReplayMissingRequest)

const endpointOf = Effect.fnUntraced(function* (id: string) {
  const channel = yield* orNotFound((yield* Channels).get("webhook") ?? null)
  return yield* orNotFound(yield* readDestination(channel, yield* ActingOrg, yield* destinationIdOf(id)))
})

const test = Effect.fnUntraced(function* (request: Request, id: string) {
  const { eventType } = yield* decoded(decodeTest, yield* readOptionalJson(request, limits.single))
  const endpoint = yield* endpointOf(id)
  const { orgId, channel } = endpoint
  yield* admitMessages(orgId, 0, [null])
  const { message, problem } = answerTo(yield* sendTestMessage(orgId, channel, endpoint.id, eventType ?? null))
  return message === undefined ? toResponse(problem) : created(`/outbound/messages/${message.id}`, message, 202)
})

const recover = Effect.fnUntraced(function* (request: Request, id: string) {
  const given = yield* bodyOf(request, decodeRecover)
  const { orgId, channel, id: to } = yield* endpointOf(id)
  const statuses = given.statuses == null ? {} : { statuses: given.statuses }
  yield* admitReplay(orgId, given.idempotencyKey ?? null)
  const view = yield* requestReplay(
    orgId,
    { filter: { to, channel, after: given.since, ...(given.until != null && { before: given.until }), ...statuses } },
    { reason: given.reason ?? null, idempotencyKey: given.idempotencyKey ?? null }
  )
  return created(`/replays/${view.id}`, replayJson(view), 202)
})

const replayMissing = Effect.fnUntraced(function* (request: Request, id: string) {
  const { since, reason = null, idempotencyKey = null } = yield* bodyOf(request, decodeReplayMissing)
  const { orgId, id: to } = yield* endpointOf(id)
  yield* admitReplay(orgId, idempotencyKey)
  const view = yield* requestReplay(orgId, { missed: { to, since } }, { reason, idempotencyKey })
  return created(`/replays/${view.id}`, replayJson(view), 202)
})

export const layer = HttpApiBuilder.group(base.add(recoveryApi), "recovery", (handlers) =>
  handlers
    .handleRaw("test", ({ request, params }) => answer(test(request, params.id)))
    .handleRaw("recover", ({ request, params }) => answer(recover(request, params.id)))
    .handleRaw("replayMissing", ({ request, params }) => answer(replayMissing(request, params.id)))
)
