/** The handlers of events: decode the request, call the application, and write its result in the API's form. */
import { Effect, identity, Result, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { publishEvents } from "../../../application/events/publishEvents.ts"
import { eraseEvent, readBody, readEvent, readMessages } from "../../../application/events/readEvents.ts"
import { type EventFilter, Events } from "../../../application/ports/Events.ts"
import { EventId } from "../../../domain/ids.ts"
import { answerToEvent, decodeEvent, decodeEventEntry, eventRequestOf } from "../../api/eventRequests.ts"
import { BATCH_MAX, messageJson } from "../../api/messageRequests.ts"
import { rawMember } from "../../api/rawJson.ts"
import { Message } from "../messages/messagesApi.ts"
import { admitEvents, keysIn } from "../orgs/admit.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg, Caller } from "../server/auth.ts"
import { answerBatch } from "../server/batches.ts"
import { noteBodyRead } from "../server/bodyReads.ts"
import { pieceOfBytes } from "../server/door.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, idOf, toResponse } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson, readReason, traceparentOf } from "../server/requestBody.ts"
import { PublishedEvent } from "./eventsApi.ts"

/** The entries are decoded one by one, so that each can be refused on its own. */
const decodeBatch = decoderOf(
  Schema.Struct({ events: Schema.Array(Schema.Unknown).check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX)) })
)

type Request = HttpServerRequest.HttpServerRequest

const publish = Effect.fnUntraced(function* (request: Request, key: string | null) {
  const orgId = yield* ActingOrg
  const json = yield* readJson(request, limits.single)
  yield* admitEvents(orgId, json.text.length, [key])
  const event = yield* decoded(decodeEvent, json)
  // Decoding has shown that the member is there.
  const data = rawMember(json.text, "data")!
  const [publication] = yield* publishEvents(orgId, [
    { ...eventRequestOf(event, data, key), traceparent: traceparentOf(request) }
  ])
  const said = answerToEvent(publication!)
  return said.event === undefined
    ? toResponse(said.problem)
    : created(`/events/${said.event.id}`, said.event, said.status)
})

const publishBatch = (request: Request) =>
  answerBatch(request, {
    name: "events",
    decodeBody: decodeBatch,
    admit: (orgId, bytes, events) => admitEvents(orgId, bytes, keysIn(events)),
    decode: ({ text, value }, path) =>
      Result.map(decodeEventEntry(value, path), ({ idempotencyKey, ...fields }) => ({
        // Decoding has shown that the member is there.
        ...eventRequestOf(fields, rawMember(text, "data")!, idempotencyKey ?? null),
        traceparent: traceparentOf(request)
      })),
    undecoded: () => Effect.void,
    accept: publishEvents,
    answerTo: answerToEvent
  })

const list = Effect.fnUntraced(function* ({ limit, cursor, ...filter }: EventFilter & PageQuery) {
  const { list } = yield* Events
  return yield* pageOf("events", { limit, cursor }, (orgId, page) => list(orgId, filter, page), {
    of: PublishedEvent,
    json: identity
  })
})

const eventIdOf = idOf(EventId)

/** The data keeps the form it was written in, so the answer is put together as text. */
const get = Effect.fnUntraced(function* (text: string) {
  const orgId = yield* ActingOrg
  const id = yield* eventIdOf(text)
  const event = JSON.stringify(yield* readEvent(orgId, id))
  const body = (yield* Caller).may("bodies:read") ? yield* readBody(orgId, id) : null
  if (body !== null) {
    yield* noteBodyRead("event", id)
    yield* pieceOfBytes(orgId, body.length)
  }
  const data = body === null ? null : rawMember(body, "data")
  return HttpServerResponse.text(`${event.slice(0, -1)},"data":${data}}`, { contentType: "application/json" })
})

const messages = Effect.fnUntraced(function* (text: string, query: PageQuery) {
  const id = yield* eventIdOf(text)
  return yield* pageOf(`events/${id}/messages`, query, (orgId, page) => readMessages(orgId, id, page), {
    of: Message,
    json: messageJson
  })
})

const erase = Effect.fnUntraced(function* (request: Request, text: string) {
  const orgId = yield* ActingOrg
  const reason = yield* readReason(request)
  return yield* eraseEvent(orgId, yield* eventIdOf(text), reason)
})

export const layer = HttpApiBuilder.group(Api, "events", (handlers) =>
  handlers
    .handleRaw("publish", ({ request, headers }) => answer(publish(request, headers["idempotency-key"] ?? null)))
    .handleRaw("publishBatch", ({ request }) => answer(publishBatch(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handleRaw("get", ({ params }) => answer(get(params.id)))
    .handle("messages", ({ params, query }) => answer(messages(params.id, query)))
    .handleRaw("erase", ({ request, params }) => answer(erase(request, params.id)))
)
