/** Answers what is asked about destinations of all kinds, and commands them, one or all of an org. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import {
  commandAll,
  commandDestination,
  type HandCommand,
  listOverviews,
  type Overview,
  readOverview
} from "../../../application/destinations/overview.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { BacklogFilter, Sort } from "../../../application/ports/Backlogs.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg, oneOrAll } from "../server/auth.ts"
import { type PageQuery, projectedPageOf } from "../server/listPages.ts"
import { answer, notFound, orNotFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readOptionalJson, readReason } from "../server/requestBody.ts"
import { destinationIdOf } from "./destinations.ts"
import { stateOf } from "./destinationsApi.ts"
import { knownChannel } from "./knownChannel.ts"
import { CommandAll, Overview as OverviewAnswer } from "./overviewApi.ts"

type Request = HttpServerRequest.HttpServerRequest

const jsonOf = (
  { destination, name, url, pause, disabling, circuit, waiting, oldestDueAt, inFlight, ...health }: Overview,
  channels: Channels["Service"]
) => {
  const { id, orgId, channel, alerting } = destination
  const path = alerting === null ? channels.get(channel)?.path : "alert-targets"
  const { status, since, until, cause, by } = circuit
  return {
    ...{ id, orgId, channel, name, url },
    path: path === undefined ? null : `/api/v1/${path}/${id}`,
    isAlertTarget: alerting !== null,
    state: stateOf(destination),
    pause,
    disabled: disabling,
    circuit: { status, since, until, cause, by },
    ...{ waiting, oldestDueAt, inFlight, ...health }
  }
}

interface ListQuery extends PageQuery, Omit<BacklogFilter, "paused" | "waiting"> {
  readonly sort?: Sort
  readonly paused?: "true" | "false"
  readonly waiting?: "true" | "false"
}

const list = Effect.fnUntraced(function* ({ limit, cursor, sort = "id", paused, waiting, ...rest }: ListQuery) {
  yield* knownChannel(rest.channel)
  const channels = yield* Channels
  const filter: BacklogFilter = {
    ...rest,
    ...(paused && { paused: paused === "true" }),
    ...(waiting && { waiting: waiting === "true" })
  }
  return yield* projectedPageOf(
    "health",
    `destinations by ${sort}`,
    { limit, cursor },
    (orgId, page) => listOverviews(oneOrAll(orgId), filter, sort, page),
    { of: OverviewAnswer, json: (overview) => jsonOf(overview, channels) }
  )
})

const found = Effect.fnUntraced(function* (id: string) {
  return yield* orNotFound(yield* readOverview(yield* ActingOrg, yield* destinationIdOf(id)))
})

const get = Effect.fnUntraced(function* (id: string) {
  const freshness = yield* (yield* Freshness).of("health")
  const { overview, history } = yield* found(id)
  return { ...jsonOf(overview, yield* Channels), history, ...freshness }
})

const commandOne = Effect.fnUntraced(function* (request: Request, id: string, command: HandCommand) {
  const reason = yield* readReason(request)
  const done = yield* commandDestination(yield* ActingOrg, yield* destinationIdOf(id), command, reason)
  if (!done) return yield* notFound()
  return jsonOf((yield* found(id)).overview, yield* Channels)
})

const decodeAll = decoderOf(CommandAll)

const commandEvery = Effect.fnUntraced(function* (request: Request, command: HandCommand) {
  const { reason, channel, stoppedFor } = yield* decoded(decodeAll, yield* readOptionalJson(request, limits.single))
  yield* knownChannel(channel ?? undefined)
  const choice = { ...(channel && { channel }), ...(stoppedFor && { stoppedFor }) }
  return { commanded: yield* commandAll(yield* ActingOrg, choice, command, reason ?? null) }
})

export const layer = HttpApiBuilder.group(Api, "overview", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("pause", ({ request, params }) => answer(commandOne(request, params.id, "pause")))
    .handleRaw("resume", ({ request, params }) => answer(commandOne(request, params.id, "resume")))
    .handleRaw("enable", ({ request, params }) => answer(commandOne(request, params.id, "enable")))
    .handleRaw("enableAll", ({ request }) => answer(commandEvery(request, "enable")))
    .handleRaw("hold", ({ request, params }) => answer(commandOne(request, params.id, "hold")))
    .handleRaw("reset", ({ request, params }) => answer(commandOne(request, params.id, "reset")))
    .handleRaw("pauseAll", ({ request }) => answer(commandEvery(request, "pause")))
    .handleRaw("resumeAll", ({ request }) => answer(commandEvery(request, "resume")))
    .handleRaw("holdAll", ({ request }) => answer(commandEvery(request, "hold")))
    .handleRaw("resetAll", ({ request }) => answer(commandEvery(request, "reset")))
)
