/** The endpoints of dead letters and their replays as data: their requests and answers. */
import { Schema, SchemaGetter } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { headerText, Retry, text } from "../../../application/destinations/fields.ts"
import { ChannelName, MessageId } from "../../../domain/ids.ts"
import { deadStatuses } from "../../../domain/replay/facts.ts"
import { replayStatuses } from "../../../domain/replay/machine.ts"
import { CommandRequest } from "../../api/messageRequests.ts"
import { Message } from "../messages/messagesApi.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { freshness, idParam, listOf, Moment, optional, paging, projectedListOf, Text, Time } from "../server/fields.ts"
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
  dismissed: Schema.optionalKey(Dismissed),
  after: Schema.optionalKey(Moment),
  before: Schema.optionalKey(Moment)
})

export const DeadLetter = Schema.Struct({
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

const chosen = {
  filter: optional(Filter.annotate({ description: "All dead letters that match; {} means all there are." })),
  ids: optional(Schema.Array(MessageId).check(Schema.isMinLength(1), Schema.isMaxLength(IDS_MAX))),
  preview: optional(Schema.Boolean.annotate({ description: "Only count." })),
  reason: optional(text(500)),
  idempotencyKey: optional(headerText(255))
}
export const ReplayRequest = Schema.Struct({
  ...chosen,
  to: optional(
    text(64).annotate({
      description:
        "Another destination of their channel: each is sent to it as a new message that names the old one, which is dismissed."
    })
  )
}).annotate({ identifier: "ReplayRequest" })

export const DismissRequest = Schema.Struct(chosen).annotate({ identifier: "DismissRequest" })

const waitingFields = {
  to: Schema.optionalKey(text(512)),
  channel: Schema.optionalKey(ChannelName),
  eventType: Schema.optionalKey(text(256)),
  correlationId: Schema.optionalKey(text(256))
}
export const CancelWaitingRequest = Schema.Struct({
  filter: Schema.Struct({
    ...waitingFields,
    createdAfter: Schema.optionalKey(Time),
    createdBefore: Schema.optionalKey(Time)
  }).annotate({
    identifier: "WaitingFilter",
    description: "All messages that wait and match; {} means all that wait."
  }),
  reason: Schema.optionalKey(text(500)),
  idempotencyKey: Schema.optionalKey(headerText(255))
}).annotate({ identifier: "CancelWaitingRequest" })

export const replayDeeds = ["replay", "send", "dismiss", "cancel"] as const

const Preview = Schema.Struct({
  matched: Schema.Int,
  contradicted: Schema.Int.annotate({ description: "How many of them may have been delivered, as a provider says." })
}).annotate({ identifier: "ReplayPreview" })

export const Replay = Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(replayStatuses),
  does: Schema.Literals(replayDeeds).annotate({
    description:
      "replay: each gets another run. send: each is sent to another destination. dismiss: each leaves the list of dead letters. cancel: each that waits is cancelled."
  }),
  to: Text.annotate({ description: "The other destination of send." }),
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
    description: "The events since then that the endpoint never had. One of filter, ids, missed and waiting is set."
  }),
  waiting: Schema.NullOr(
    Schema.Struct({
      ...waitingFields,
      createdAfter: Schema.optionalKey(Moment),
      createdBefore: Schema.optionalKey(Moment)
    })
  ).annotate({ description: "Which messages are cancelled." }),
  outcome: Schema.NullOr(
    Schema.Struct({
      arrived: Schema.Int.annotate({ description: "Delivered." }),
      sent: Schema.Int.annotate({ description: "Taken, and no proof of delivery yet." }),
      failed: Schema.Int,
      waiting: Schema.Int,
      ended: Schema.Int.annotate({ description: "Cancelled or expired." }),
      ...freshness
    })
  ).annotate({
    description:
      "What became since of the messages whose present run it opened, as far as the lists know. Null in lists, and of a job that sends nothing."
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
      Schema.Literals(["true", "false"])
        .annotate({ description: "true: those that were dismissed, in place of those that were not." })
        .pipe(
          Schema.decodeTo(Schema.Boolean, {
            decode: SchemaGetter.transform((text) => text === "true"),
            encode: SchemaGetter.transform((flag) => (flag ? "true" : "false"))
          })
        )
    )
  },
  success: projectedListOf(DeadLetter)
}).annotateMerge(
  about(
    "Dead letters, the last to die first. They ended in FAILED or DEAD_LETTER and were neither replayed nor dismissed."
  )
)

const replay = HttpApiEndpoint.post("replay", "/dead-letters/replay", {
  payload: ReplayRequest,
  success: [Replay.pipe(HttpApiSchema.status(202)), Preview.pipe(HttpApiSchema.status(200))],
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Replay all dead letters that match, or these. 202 when it is sure to happen; a preview only counts.")
)

const dismissMany = HttpApiEndpoint.post("dismissMany", "/dead-letters/dismiss", {
  payload: DismissRequest,
  success: [Replay.pipe(HttpApiSchema.status(202)), Preview.pipe(HttpApiSchema.status(200))],
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(
  about("Dismiss all dead letters that match, or these: a job like a replay. They stay, and can still be replayed.")
)

const cancelWaiting = HttpApiEndpoint.post("cancelWaiting", "/outbound/messages/cancel", {
  payload: CancelWaitingRequest,
  success: Replay.pipe(HttpApiSchema.status(202)),
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(about("Cancel all messages that wait and match: a job like a replay. It survives every crash."))

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
  .add(list, replay, dismissMany, cancelWaiting, replays, getReplay, cancelReplay)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Dead letters" }))
