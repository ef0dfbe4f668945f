/** The endpoints of events as data: their requests and answers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { EventBatchEntry, EventRequest } from "../../api/eventRequests.ts"
import { BATCH_MAX, CommandRequest, IdempotencyKey } from "../../api/messageRequests.ts"
import { Message } from "../messages/messagesApi.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, listOf, Moment, paging, Text, Time } from "../server/fields.ts"
import { ProblemBody, problemOf } from "../server/problem.ts"

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

const publish = HttpApiEndpoint.post("publish", "/events", {
  headers: Schema.Struct({ "idempotency-key": Schema.optionalKey(IdempotencyKey) }),
  payload: EventRequest,
  success: [PublishedEvent.pipe(HttpApiSchema.status(201)), PublishedEvent.pipe(HttpApiSchema.status(200))],
  error: [problemOf(409), problemOf(422), ...bodyErrors]
}).annotateMerge(
  about(
    "Publish an event: it becomes a message for every webhook endpoint that wants its type. 201 when all of it is stored; 200 with the same event when the key was used for it before."
  )
)

const publishBatch = HttpApiEndpoint.post("publishBatch", "/events/batch", {
  payload: Schema.Struct({
    events: Schema.Array(EventBatchEntry).check(Schema.isMinLength(1), Schema.isMaxLength(BATCH_MAX))
  }),
  success: Schema.Struct({ items: Schema.Array(EventBatchAnswer) }),
  error: bodyErrors
}).annotateMerge(about("Publish up to 1,000 events, each answered on its own and in its place."))

const list = HttpApiEndpoint.get("list", "/events", {
  query: {
    ...paging,
    eventType: Schema.optionalKey(text(256)),
    correlationId: Schema.optionalKey(text(256)),
    dossierId: Schema.optionalKey(text(256)),
    createdAfter: Schema.optionalKey(Time),
    createdBefore: Schema.optionalKey(Time)
  },
  success: listOf(PublishedEvent)
}).annotateMerge(about("List events, newest first."))

const get = HttpApiEndpoint.get("get", "/events/:id", { ...byId, success: EventWithData }).annotateMerge(
  about("One event, with its data.")
)

const messages = HttpApiEndpoint.get("messages", "/events/:id/messages", {
  ...byId,
  query: paging,
  success: listOf(Message)
}).annotateMerge(about("The messages that an event became, each as it is now."))

const erase = HttpApiEndpoint.post("erase", "/events/:id/erase", {
  params: idParam,
  payload: CommandRequest,
  success: PublishedEvent,
  error: [problemOf(404), problemOf(409), ...bodyErrors]
}).annotateMerge(
  about(
    "Erase an event's body, and the bodies and answers of all its messages, at once. Facts stay; what was not sent is never sent."
  )
)

export const eventsApi = HttpApiGroup.make("events")
  .add(publish, publishBatch, list, get, messages, erase)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Events" }))
