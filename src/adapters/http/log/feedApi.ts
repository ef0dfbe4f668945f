/** The endpoint of the feed as data. Its answer is a stream of server-sent events; one event is a fact. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { statuses } from "../../../domain/message/machine.ts"
import { OrgAccess } from "../server/auth.ts"
import { problemOf } from "../server/problem.ts"

const Id = Schema.String.annotate({ description: "The id of the last event seen. Without one it begins now." })

const follow = HttpApiEndpoint.get("follow", "/feed", {
  headers: Schema.Struct({ "last-event-id": Schema.optionalKey(Id) }),
  query: {
    lastEventId: Schema.optionalKey(Id),
    stream: Schema.optionalKey(text(200)),
    type: Schema.optionalKey(text(100)),
    channel: Schema.optionalKey(ChannelName),
    to: Schema.optionalKey(text(512)),
    dossierId: Schema.optionalKey(text(256)),
    correlationId: Schema.optionalKey(text(256)),
    status: Schema.optionalKey(Schema.Literals(statuses))
  },
  success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
  error: problemOf(429)
}).annotateMerge(
  OpenApi.annotations({
    summary: "Follow the facts of the org as they are stored, as server-sent events.",
    description:
      "Each event's data is JSON: {stream, version, type, name, at, actor, data, message}, message being what the message is after the fact, or null. It goes on where Last-Event-ID says, nothing is left out; an event may come twice. Facts that a scope guards which the key lacks are left out. A comment every 15 seconds shows that it is alive."
  })
)

export const feedApi = HttpApiGroup.make("feed")
  .add(follow)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Feed" }))
