/** The handlers of dead letters and their replays. */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type AsOf, Freshness } from "../../../application/log/Freshness.ts"
import { Destinations } from "../../../application/ports/Destinations.ts"
import { type DeadLetter, listDeadLetters } from "../../../application/replays/deadLetters.ts"
import {
  cancelReplay,
  listReplays,
  type Outcome,
  previewReplay,
  type ReplayView,
  readReplay,
  requestReplay
} from "../../../application/replays/replays.ts"
import { DestinationId, isUuid, type OrgId, ReplayId } from "../../../domain/ids.ts"
import type { DeadLetterFilter, DeadLetterSelection, ReplaySelection } from "../../../domain/replay/facts.ts"
import { messageJson } from "../../api/messageRequests.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { admitReplay } from "../orgs/admit.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg, oneOrAll } from "../server/auth.ts"
import { type Page, type PageQuery, pageOf, projectedPageOf } from "../server/listPages.ts"
import { answer, created, idOf, invalidFields, type Problem } from "../server/problem.ts"
import { bodyOf, decoderOf, readReason } from "../server/requestBody.ts"
import { asReader } from "../server/underWay.ts"
import {
  CancelWaitingRequest,
  DeadLetter as DeadLetterAnswer,
  DismissRequest,
  Replay,
  ReplayRequest,
  type replayDeeds
} from "./deadLettersApi.ts"

const decodeRequest = decoderOf(ReplayRequest)
const decodeDismissal = decoderOf(DismissRequest)
const decodeCancelWaiting = decoderOf(CancelWaitingRequest)

const deadLetterJson = ({ message, ...ending }: DeadLetter) => ({ ...messageJson(message), ...ending })

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
    of: DeadLetterAnswer,
    json: deadLetterJson
  })
})

const replay = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const given = yield* bodyOf(request, decodeRequest)
  const { to } = given
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

/** A request without ids and filter is refused: an omission must not replay everything. */
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

export const layer = HttpApiBuilder.group(Api, "deadLetters", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handleRaw("replay", ({ request }) => answer(replay(request)))
    .handleRaw("dismissMany", ({ request }) => answer(dismiss(request)))
    .handleRaw("cancelWaiting", ({ request }) => answer(cancelWaiting(request)))
    .handle("replays", ({ query }) => answer(replays(query)))
    .handle("getReplay", ({ params }) => answer(getReplay(params.id)))
    .handleRaw("cancelReplay", ({ request, params }) => answer(cancel(request, params.id)))
)
