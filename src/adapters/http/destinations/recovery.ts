/** The handlers that test a webhook endpoint and recover what it missed. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { readDestination } from "../../../application/destinations/destinations.ts"
import { sendTestMessage } from "../../../application/destinations/testMessage.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { requestReplay } from "../../../application/replays/replays.ts"
import { answerTo } from "../../api/messageRequests.ts"
import { admitMessages, admitReplay } from "../orgs/admit.ts"
import { replayJson } from "../replays/deadLetters.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { answer, created, orNotFound, toResponse } from "../server/problem.ts"
import { bodyOf, decoded, decoderOf, limits, readOptionalJson } from "../server/requestBody.ts"
import { destinationIdOf } from "./destinations.ts"
import { RecoverRequest, ReplayMissingRequest, TestRequest } from "./recoveryApi.ts"

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

export const layer = HttpApiBuilder.group(Api, "recovery", (handlers) =>
  handlers
    .handleRaw("test", ({ request, params }) => answer(test(request, params.id)))
    .handleRaw("recover", ({ request, params }) => answer(recover(request, params.id)))
    .handleRaw("replayMissing", ({ request, params }) => answer(replayMissing(request, params.id)))
)
