/** The resource of dead letters and their replays. */
import { Effect, Schema, SchemaGetter } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { type AsOf, Freshness } from "../../../application/log/Freshness.ts"
import { Destinations } from "../../../application/ports/Destinations.ts"
import { headerText, Retry, text } from "../../../application/ports/fields.ts"
import { listDeadLetters, type DeadLetter as View } from "../../../application/replays/deadLetters.ts"
import {
  cancelReplay,
  listReplays,
  type Outcome,
  previewReplay,
  type ReplayView,
  readReplay,
  requestReplay
} from "../../../application/replays/replays.ts"
import { ChannelName, DestinationId, isUuid, MessageId, type OrgId, ReplayId } from "../../../domain/ids.ts"
import {
  type DeadLetterFilter,
  type DeadLetterSelection,
  deadStatuses,
  type ReplaySelection
} from "../../../domain/replay/facts.ts"
import { replayStatuses } from "../../../domain/replay/machine.ts"
import { CommandRequest, messageJson, ofKey } from "../../api/messageRequests.ts"
import { Message } from "../messages/messageJson.ts"
import { maySend } from "../messages/messages.ts"
import { admitReplay } from "../orgs/admit.ts"
import { ActingOrg, OrgAccess, oneOrAll } from "../server/auth.ts"
import { about, base, bodyErrors, byId, ofAllOrgs, titled } from "../server/endpoints.ts"
import {
  createdBetween,
  filters,
  freshness,
  Id,
  idParam,
  listOf,
  Moment,
  maybe,
  maybeTime,
  needsOneOf,
  optional,
  paging,
  projectedListOf,
  reason,
  Text
} from "../server/fields.ts"
import { knownChannel } from "../server/knownChannel.ts"
import { asReader, type Page, type PageQuery, pageOf, projectedPageOf } from "../server/listPages.ts"
import { answer, created, idOf, invalidFields, type Problem, problemOf } from "../server/problem.ts"
import { bodyOf, decoderOf, readReason } from "../server/requestBody.ts"

const IDS_MAX = 1000

const filterFields = {
  to: filters.to,
  channel: filters.channel,
  errorCode: maybe(text(256), "The code of the last error, such as http_410."),
  after: maybeTime("Died after this time."),
  before: maybeTime("Died before this time.")
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

const example = { filter: { errorCode: "http_503" }, reason: "the shop is up again" }

const chosen = {
  filter: optional(Filter, "All dead letters that match; {} means all there are."),
  ids: optional(
    Schema.Array(MessageId).check(Schema.isMinLength(1), Schema.isMaxLength(IDS_MAX)),
    "These dead letters, in place of a filter."
  ),
  preview: optional(Schema.Boolean, "Only count."),
  reason,
  idempotencyKey: optional(headerText(255), ofKey)
}

export const ReplayRequest = Schema.Struct({
  ...chosen,
  to: optional(
    text(64),
    "Another destination of their channel: each is sent to it as a new message that names the old one, which is dismissed. A key needs messages:send for it."
  )
})
  .check(needsOneOf("filter", "ids"))
  .annotate({ identifier: "ReplayRequest", examples: [example] })

export const DismissRequest = Schema.Struct(chosen)
  .check(needsOneOf("filter", "ids"))
  .annotate({ identifier: "DismissRequest", examples: [example] })

const waitingFields = {
  to: filters.to,
  channel: filters.channel,
  eventType: filters.eventType,
  correlationId: filters.correlationId
}

export const CancelWaitingRequest = Schema.Struct({
  filter: Schema.Struct({ ...waitingFields, ...createdBetween }).annotate({
    identifier: "WaitingFilter",
    description: "All messages that wait and match; {} means all that wait."
  }),
  reason,
  idempotencyKey: optional(headerText(255), ofKey)
}).annotate({
  identifier: "CancelWaitingRequest",
  examples: [{ filter: { channel: "webhook" }, reason: "sent in error" }]
})

const replayDeeds = ["replay", "send", "dismiss", "cancel"] as const

const Preview = Schema.Struct({
  matched: Schema.Int,
  contradicted: Schema.Int.annotate({ description: "How many of them may have been delivered, as a provider says." })
}).annotate({ identifier: "ReplayPreview" })

export const Replay = Schema.Struct({
  id: Id,
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
  missed: Schema.NullOr(Schema.Struct({ to: Schema.String, since: Moment })).annotate({
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

export const deadLettersApi = HttpApiGroup.make("deadLetters")
  .add(
    HttpApiEndpoint.get("list", "/dead-letters", {
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
    })
      .annotateMerge(
        about(
          "messages:read",
          "Dead letters, the last to die first. They ended in FAILED or DEAD_LETTER and were neither replayed nor dismissed."
        )
      )
      .annotateMerge(ofAllOrgs),
    HttpApiEndpoint.post("replay", "/dead-letters/replay", {
      payload: ReplayRequest,
      success: [Replay.pipe(HttpApiSchema.status(202)), Preview.pipe(HttpApiSchema.status(200))],
      error: [problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about(
        "replays:write",
        "Replay all dead letters that match, or these. 202 when it is sure to happen; a preview only counts."
      )
    ),
    HttpApiEndpoint.post("dismissMany", "/dead-letters/dismiss", {
      payload: DismissRequest,
      success: [Replay.pipe(HttpApiSchema.status(202)), Preview.pipe(HttpApiSchema.status(200))],
      error: [problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about(
        "replays:write",
        "Dismiss all dead letters that match, or these: a job like a replay. They stay, and can still be replayed."
      )
    ),
    HttpApiEndpoint.post("cancelWaiting", "/outbound/messages/cancel", {
      payload: CancelWaitingRequest,
      success: Replay.pipe(HttpApiSchema.status(202)),
      error: [problemOf(409), ...bodyErrors]
    }).annotateMerge(
      about("messages:send", "Cancel all messages that wait and match: a job like a replay. It survives every crash.")
    ),
    HttpApiEndpoint.get("replays", "/replays", { query: paging, success: listOf(Replay) }).annotateMerge(
      about("messages:read", "List replays, newest first.")
    ),
    HttpApiEndpoint.get("getReplay", "/replays/:id", { ...byId, success: Replay }).annotateMerge(
      about("messages:read", "How far a replay is.")
    ),
    HttpApiEndpoint.post("cancelReplay", "/replays/:id/cancel", {
      params: idParam,
      payload: CommandRequest,
      success: Replay,
      error: [problemOf(404), problemOf(409), ...bodyErrors]
    }).annotateMerge(about("replays:write", "Replay no further message. Those that were replayed stay so."))
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Dead letters", "Messages that were not delivered: find them, and replay many."))

const decodeRequest = decoderOf(ReplayRequest)

const decodeDismissal = decoderOf(DismissRequest)

const decodeCancelWaiting = decoderOf(CancelWaitingRequest)

const deadLetterJson = ({ message, ...ending }: View) => ({ ...messageJson(message), ...ending })

export const replayJson = ({
  selection,
  orgId: _,
  outcome = null,
  ...replay
}: ReplayView & { readonly outcome?: (Outcome & AsOf) | null }) => ({
  ...replay,
  does: doesOf(selection),
  to: "sendTo" in selection ? (selection.sendTo ?? null) : null,
  waiting: "waiting" in selection ? selection.waiting : null,
  outcome,
  filter: "filter" in selection ? selection.filter : null,
  ids: "ids" in selection ? selection.ids : null,
  missed: "missed" in selection ? selection.missed : null
})

const doesOf = (selection: ReplaySelection): (typeof replayDeeds)[number] => {
  if ("waiting" in selection) return "cancel"
  if ("dismiss" in selection && selection.dismiss) return "dismiss"
  return "sendTo" in selection && selection.sendTo !== undefined ? "send" : "replay"
}

const list = Effect.fnUntraced(function* ({ limit, cursor, ...filter }: DeadLetterFilter & PageQuery) {
  yield* knownChannel(filter.channel)
  const read = (orgId: OrgId, page: Page) => listDeadLetters(oneOrAll(orgId), filter, page)
  return yield* projectedPageOf("messages", "dead-letters", { limit, cursor }, read, {
    of: DeadLetter,
    json: deadLetterJson
  })
})

const replay = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const given = yield* bodyOf(request, decodeRequest)
  const { to } = given
  if (to != null) yield* maySend
  if (to != null && !isUuid(to)) yield* invalidFields([{ field: "to", reason: "must be the id of a destination" }])
  return yield* requested(given, to == null ? {} : { sendTo: DestinationId.make(to) })
})

const dismiss = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  return yield* requested(yield* bodyOf(request, decodeDismissal), { dismiss: true })
})

const cancelWaiting = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const orgId = yield* ActingOrg
  const { filter, reason = null, idempotencyKey = null } = yield* bodyOf(request, decodeCancelWaiting)
  yield* knownChannel(filter.channel)
  yield* admitReplay(orgId, idempotencyKey)
  const view = yield* requestReplay(orgId, { waiting: filter }, { reason, idempotencyKey })
  return created(`/replays/${view.id}`, replayJson(view), 202)
})

const requested = Effect.fnUntraced(function* (
  given: typeof ReplayRequest.Type,
  instead: { readonly sendTo?: DestinationId; readonly dismiss?: true }
) {
  const orgId = yield* ActingOrg
  yield* knownChannel(given.filter?.channel)
  if (instead.sendTo !== undefined) yield* ownDestination(orgId, instead.sendTo)
  const selection = { ...(yield* selectionOf(given)), ...instead }
  if (given.preview === true) return HttpServerResponse.jsonUnsafe(yield* asReader(previewReplay(orgId, selection)))
  yield* admitReplay(orgId, given.idempotencyKey ?? null)
  const view = yield* requestReplay(orgId, selection, {
    reason: given.reason ?? null,
    idempotencyKey: given.idempotencyKey ?? null
  })
  return created(`/replays/${view.id}`, replayJson(view), 202)
})

const ownDestination = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const found = yield* (yield* Destinations).get(orgId, id)
  if (found === null) yield* invalidFields([{ field: "to", reason: "is no destination of this org" }])
})

/** Refuses a request without ids and filter: an omission must not replay everything. */
const selectionOf = ({ filter, ids }: typeof ReplayRequest.Type): Effect.Effect<DeadLetterSelection, Problem> => {
  const hasFilter = filter !== undefined && filter !== null
  const hasIds = ids !== undefined && ids !== null
  if (hasFilter && !hasIds) return Effect.succeed({ filter })
  if (hasIds && !hasFilter) return Effect.succeed({ ids })
  const reason = hasIds ? "must be left out where ids are given" : "or ids must be given; {} means all dead letters"
  return Effect.fail(invalidFields([{ field: "filter", reason }]))
}

const replays = (query: PageQuery) => pageOf("replays", query, listReplays, { of: Replay, json: replayJson })

const replayIdOf = idOf(ReplayId)

const getReplay = Effect.fnUntraced(function* (id: string) {
  const freshness = yield* (yield* Freshness).of("messages")
  const { outcome, ...view } = yield* readReplay(yield* ActingOrg, yield* replayIdOf(id))
  return replayJson({ ...view, outcome: outcome === null ? null : { ...outcome, ...freshness } })
})

const cancel = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const reason = yield* readReason(request)
  return replayJson(yield* cancelReplay(yield* ActingOrg, yield* replayIdOf(id), reason))
})

export const layer = HttpApiBuilder.group(base.add(deadLettersApi), "deadLetters", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handleRaw("replay", ({ request }) => answer(replay(request)))
    .handleRaw("dismissMany", ({ request }) => answer(dismiss(request)))
    .handleRaw("cancelWaiting", ({ request }) => answer(cancelWaiting(request)))
    .handle("replays", ({ query }) => answer(replays(query)))
    .handle("getReplay", ({ params }) => answer(getReplay(params.id)))
    .handleRaw("cancelReplay", ({ request, params }) => answer(cancel(request, params.id)))
)
