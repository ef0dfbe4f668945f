/** The resource of events. */
import { Effect, identity, Result, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { publishEvents } from "../../../application/events/publishEvents.ts"
import { eraseEvent, readBody, readEvent, readMessages } from "../../../application/events/readEvents.ts"
import { type EventFilter, Events } from "../../../application/ports/Events.ts"
import { EventId } from "../../../domain/ids.ts"
import {
  answerToEvent,
  decodeEvent,
  decodeEventEntry,
  EventBatchEntry,
  EventRequest,
  eventBatchExamples,
  eventRequestOf
} from "../../api/eventRequests.ts"
import { BATCH_MAX, CommandRequest, IdempotencyKey, messageJson, ofKey } from "../../api/messageRequests.ts"
import { rawMember } from "../../api/rawJson.ts"
import { Message } from "../messages/messageJson.ts"
import { admitEvents, keysIn } from "../orgs/admit.ts"
import { ActingOrg, Caller, OrgAccess } from "../server/auth.ts"
import { answerBatch } from "../server/batches.ts"
import { noteBodyRead } from "../server/bodyReads.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { createdBetween, filters, idParam, listOf, Moment, maybe, paging, Text } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, idOf, ProblemBody, problemOf, toResponse } from "../server/problem.ts"
import { decoded, decoderOf, limits, readJson, readReason, traceparentOf } from "../server/requestBody.ts"

const eventFields = {
  id: Schema.String,
  orgId: Schema.String,
  eventType: Schema.String,
  matched: Schema.Int.annotate({ description: "How many endpoints wanted it; each got a message." }),
  dossierId: Text,
  orderingKey: Text,
  correlationId: Text,
  metadata: Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
  deliverAt: Schema.NullOr(Moment),
  expiresAt: Schema.NullOr(Moment),
  createdAt: Moment,
  bodyErased: Schema.Boolean
}

export const PublishedEvent = Schema.Struct(eventFields).annotate({ identifier: "PublishedEvent" })

const EventWithData = Schema.Struct({
  ...eventFields,
  data: Schema.Unknown.annotate({ description: "As it was written; null once it is erased." })
}).annotate({ identifier: "EventWithData" })

const EventBatchAnswer = Schema.Struct({
  status: Schema.Int.annotate({ description: "The status this entry would have had on its own." }),
  event: Schema.optionalKey(PublishedEvent),
  problem: Schema.optionalKey(ProblemBody)
}).annotate({ identifier: "EventBatchAnswer" })

export const eventsApi = HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.post("publish", "/events", {
      headers: Schema.Struct({ "idempotency-key": maybe(IdempotencyKey, ofKey) }),
      payload: EventRequest,
      success: [PublishedEvent.pipe(HttpApiSchema.status(201)), PublishedEvent.pipe(HttpApiSchema.status(200))],
      error: [problemOf(409), problemOf(422), ...bodyErrors]
    }).annotateMerge(
      about(
        "messages:send",
        "Publish an event: it becomes a message for every webhook endpoint that wants its type. 201 when all of it is stored; 200 with the same event when the key was used for it before."
      )
    ),
    HttpApiEndpoint.post("publishBatch", "/events/batch", {
      payload: Schema.Struct({
        events: Schema.Array(EventBatchEntry)
          .check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX))
          .annotate({ description: "Each is published or refused on its own." })
      }).annotate({ identifier: "EventBatch", examples: [{ events: eventBatchExamples }] }),
      success: Schema.Struct({ items: Schema.Array(EventBatchAnswer) }).annotate({ identifier: "EventBatchAnswers" }),
      error: bodyErrors
    }).annotateMerge(about("messages:send", "Publish up to 1,000 events, each answered on its own and in its place.")),
    HttpApiEndpoint.get("list", "/events", {
      query: {
        ...paging,
        eventType: filters.eventType,
        correlationId: filters.correlationId,
        dossierId: filters.dossierId,
        ...createdBetween
      },
      success: listOf(PublishedEvent)
    }).annotateMerge(about("messages:read", "List events, newest first.")),
    HttpApiEndpoint.get("get", "/events/:id", { ...byId, success: EventWithData }).annotateMerge(
      about("messages:read", "One event, with its data.")
    ),
    HttpApiEndpoint.get("messages", "/events/:id/messages", {
      ...byId,
      query: paging,
      success: listOf(Message)
    }).annotateMerge(about("messages:read", "The messages that an event became, each as it is now.")),
    HttpApiEndpoint.post("erase", "/events/:id/erase", {
      params: idParam,
      payload: CommandRequest,
      success: PublishedEvent,
      error: [problemOf(404), problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about(
        "erasures:write",
        "Erase an event's body, and the bodies and answers of all its messages, at once. Facts stay; what was not sent is never sent."
      )
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Events", "An event is told to every webhook endpoint that wants its type."))

/** Entries are decoded one by one, so that each can be refused on its own. */
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

/** The data keeps the form it was written in, so the answer is joined as text. */
const get = Effect.fnUntraced(function* (text: string) {
  const orgId = yield* ActingOrg
  const id = yield* eventIdOf(text)
  const event = JSON.stringify(yield* readEvent(orgId, id))
  const body = (yield* Caller).may("bodies:read") ? yield* readBody(orgId, id) : null
  if (body !== null) yield* noteBodyRead("event", id)
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

export const layer = HttpApiBuilder.group(base.add(eventsApi), "events", (handlers) =>
  handlers
    .handleRaw("publish", ({ request, headers }) => answer(publish(request, headers["idempotency-key"] ?? null)))
    .handleRaw("publishBatch", ({ request }) => answer(publishBatch(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handleRaw("get", ({ params }) => answer(get(params.id)))
    .handle("messages", ({ params, query }) => answer(messages(params.id, query)))
    .handleRaw("erase", ({ request, params }) => answer(erase(request, params.id)))
)
