/** The endpoints of dead letters and their replays as data: their requests and answers. */
import { Schema, SchemaGetter } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { headerText, Retry, text } from "../../../application/destinations/fields.ts"
import { CommandRequest } from "../../../application/requests/messageRequests.ts"
import { ChannelName, MessageId } from "../../../domain/ids.ts"
import { deadStatuses } from "../../../domain/replay/facts.ts"
import { replayStatuses } from "../../../domain/replay/machine.ts"
import { Message } from "../messages/messagesApi.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, listOf, Moment, optional, paging, Text, Time } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

export const IDS_MAX = 1000

const filterFields = {
  to: Schema.optionalKey(text(512)),
  channel: Schema.optionalKey(ChannelName),
  errorCode: Schema.optionalKey(text(256).annotate({ description: "The code of the last error, such as http_410." })),
  after: Schema.optionalKey(Time.annotate({ description: "Died after this time." })),
  before: Schema.optionalKey(Time.annotate({ description: "Died before this time." }))
}
const Dismissed = Schema.Boolean.annotate({
  description: "Those that were dismissed, in place of those that were not."
})
const Filter = Schema.Struct({ ...filterFields, dismissed: Schema.optionalKey(Dismissed) }).annotate({
  identifier: "DeadLetterFilter"
})

/** In answers times are text. */
const FilterAnswer = Schema.Struct({
  to: Schema.optionalKey(Schema.String),
  channel: Schema.optionalKey(ChannelName),
  errorCode: Schema.optionalKey(Schema.String),
  statuses: Schema.optionalKey(Schema.Array(Schema.Literals(deadStatuses))),
  dismissed: Schema.optionalKey(Schema.Boolean),
  after: Schema.optionalKey(Moment),
  before: Schema.optionalKey(Moment)
})

const DeadLetter = Schema.Struct({
  ...Message.fields,
  deadLetteredAt: Moment,
  wouldReplayTo: Schema.Struct({
    destination: Schema.String,
    url: Text.annotate({ description: "Without query and user info. Null when the destination is gone." }),
    exists: Schema.Boolean.annotate({ description: "When false, a replay would fail: the destination is gone." }),
    paused: Schema.Boolean.annotate({ description: "When true, a replay would wait until it is resumed." }),
    hasBody: Schema.Boolean.annotate({ description: "When false, the body was erased: only another can be sent." }),
    attemptsMax: Schema.Int,
    retry: Retry
  })
}).annotate({ identifier: "DeadLetter" })

export const ReplayRequest = Schema.Struct({
  filter: optional(Filter.annotate({ description: "All dead letters that match; {} means all there are." })),
  ids: optional(Schema.Array(MessageId).check(Schema.isMinLength(1), Schema.isMaxLength(IDS_MAX))),
  preview: optional(Schema.Boolean.annotate({ description: "Only count." })),
  reason: optional(text(500)),
  idempotencyKey: optional(headerText(255))
}).annotate({ identifier: "ReplayRequest" })

const Preview = Schema.Struct({
  matched: Schema.Int,
  contradicted: Schema.Int.annotate({ description: "How many of them may have been delivered, as a provider says." })
}).annotate({ identifier: "ReplayPreview" })

export const Replay = Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(replayStatuses),
  matched: Schema.Int.annotate({
    description: "How many dead letters or missed events it is for; while it is searching, how many were found so far."
  }),
  searching: Schema.Boolean.annotate({
    description: "What was dead or missed at requestedAt is still being searched for; its replay begins afterwards."
  }),
  replayed: Schema.Int,
  skipped: Schema.Int.annotate({
    description: "When their turn came: not dead any more, sent by another, over their time, or without a body."
  }),
  filter: Schema.NullOr(FilterAnswer),
  ids: Schema.NullOr(Schema.Array(Schema.String)),
  missed: Schema.NullOr(
    Schema.Struct({
      to: Schema.String,
      since: Moment
    })
  ).annotate({
    description: "The events since then that the endpoint never had. One of filter, ids and missed is set."
  }),
  reason: Text,
  requestedAt: Moment,
  endedAt: Schema.NullOr(Moment)
}).annotate({ identifier: "Replay" })

const list = HttpApiEndpoint.get("list", "/dead-letters", {
  query: {
    ...paging,
    ...filterFields,
    dismissed: Schema.optionalKey(
      Schema.Literals(["true", "false"]).pipe(
        Schema.decodeTo(Schema.Boolean, {
          decode: SchemaGetter.transform((text) => text === "true"),
          encode: SchemaGetter.transform((flag) => (flag ? "true" : "false"))
        })
      )
    ).annotateKey({ description: "true: those that were dismissed, in place of those that were not." })
  },
  success: listOf(DeadLetter)
}).annotateMerge(
  about("Messages that ended in FAILED or DEAD_LETTER and were neither replayed nor dismissed; the last to die first.")
)

const replay = HttpApiEndpoint.post("replay", "/dead-letters/replay", {
  payload: ReplayRequest,
  success: [Replay.pipe(HttpApiSchema.status(202)), Preview.pipe(HttpApiSchema.status(200))],
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Replay all dead letters that match, or these. 202 when it is sure to happen; a preview only counts.")
)

const replays = HttpApiEndpoint.get("replays", "/replays", { query: paging, success: listOf(Replay) }).annotateMerge(
  about("List replays, newest first.")
)

const getReplay = HttpApiEndpoint.get("getReplay", "/replays/:id", { ...byId, success: Replay }).annotateMerge(
  about("How far a replay is.")
)

const cancelReplay = HttpApiEndpoint.post("cancelReplay", "/replays/:id/cancel", {
  params: idParam,
  payload: CommandRequest,
  success: Replay,
  error: [problemOf(404), problemOf(409), ...bodyErrors]
}).annotateMerge(about("Replay no further message. Those that were replayed stay so."))

export const deadLettersApi = HttpApiGroup.make("deadLetters")
  .add(list, replay, replays, getReplay, cancelReplay)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Dead letters" }))
