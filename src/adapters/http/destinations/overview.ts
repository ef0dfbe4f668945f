/** Destinations of all channels: lists and commands, for one or all of an org. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import {
  commandAll,
  commandDestination,
  type HandCommand,
  handCommands,
  listOverviews,
  readOverview,
  type Overview as View
} from "../../../application/destinations/overview.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import { type BacklogFilter, type Sort, sorts } from "../../../application/ports/Backlogs.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { text } from "../../../application/ports/fields.ts"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { CommandRequest } from "../../api/messageRequests.ts"
import { ActingOrg, OrgAccess, oneOrAll } from "../server/auth.ts"
import { about, base, bodyErrors, byId, ofAllOrgs, titled } from "../server/endpoints.ts"
import {
  filters,
  freshness,
  Id,
  idParam,
  Moment,
  maybe,
  optional,
  paging,
  projectedListOf,
  Reason,
  switchParameter,
  Text
} from "../server/fields.ts"
import { knownChannel } from "../server/knownChannel.ts"
import { type PageQuery, projectedPageOf } from "../server/listPages.ts"
import { answer, notFound, orNotFound, problemOf } from "../server/problem.ts"
import { decoded, decoderOf, limits, readOptionalJson, readReason } from "../server/requestBody.ts"
import { destinationIdOf, stateOf, states } from "./destinations.ts"

const destination = {
  id: Id,
  orgId: Schema.String,
  channel: ChannelName,
  name: Schema.String.annotate({ description: "Its description, else its URL, else its id." }),
  url: Text.annotate({ description: "Without user, password and parameters." }),
  path: Text.annotate({ description: "Where its settings are, such as /api/v1/webhook-endpoints/{id}." }),
  isAlertTarget: Schema.Boolean,
  state: Schema.Literals(states),
  pause: Schema.NullOr(Schema.Struct({ since: Moment, by: Text, reason: Text })),
  disabled: Schema.NullOr(Schema.Struct({ since: Moment, reason: Schema.String })),
  circuit: Schema.Struct({
    status: Schema.Literals(circuitStatuses),
    since: Schema.NullOr(Moment),
    until: Schema.NullOr(Moment),
    cause: Text.annotate({ description: "Why it is not closed, in words." }),
    by: Text
  }),
  waiting: Schema.Int.annotate({ description: "Messages that wait; 10,000 means that many or more." }),
  oldestDueAt: Schema.NullOr(Moment).annotate({ description: "When the first of them is due, or was." }),
  inFlight: Schema.Int.annotate({ description: "Messages that workers hold." }),
  lastHour: Schema.Struct({
    succeeded: Schema.Int,
    failed: Schema.Int,
    successRate: Schema.NullOr(Schema.Finite).annotate({ description: "Between 0 and 1; null without attempts." })
  }),
  perSecond: Schema.Finite.annotate({ description: "Attempts that succeed, over the last five to ten minutes." }),
  drainsInSeconds: Schema.NullOr(Schema.Int).annotate({
    description:
      "How long what waits takes at that rate from when the first is due; where 10,000 wait, at least so long. Null while something holds it up, a suspended org too, and when nothing succeeds."
  })
}

export const Overview = Schema.Struct(destination).annotate({ identifier: "Destination" })

const OverviewWithHistory = Schema.Struct({
  ...destination,
  history: Schema.Array(Schema.Struct({ at: Moment, type: Schema.String, by: Text, reason: Text })).annotate({
    description: "What happened to it and its circuit, the oldest first; the last 50."
  }),
  ...freshness
}).annotate({ identifier: "DestinationWithHistory" })

const PATH = "/destinations"

const summaries = {
  pause: "Send nothing to a destination until it is resumed. Its messages wait.",
  resume: "Send to a destination again, beginning with what has waited.",
  enable: "Send to a destination again that was disabled, beginning with what has waited.",
  hold: "Stop calling a destination until its circuit is reset.",
  reset: "Close the circuit of a destination by hand. Traffic comes back slowly."
}

const summariesOfAll = {
  pause: "Pause all destinations of the org but its alert targets.",
  resume: "Resume all destinations of the org, or those that were paused for one reason.",
  enable: "Enable all destinations of the org that were disabled.",
  hold: "Hold the circuits of all destinations of the org but its alert targets.",
  reset: "Reset the circuits of all destinations of the org, or those that were held for one reason."
}

const CommandAll = Schema.Struct({
  ...Reason.fields,
  channel: optional(ChannelName, "Only those of this channel."),
  stoppedFor: optional(text(500), "Only those that were paused or held with exactly this reason.")
}).annotate({ identifier: "CommandAllDestinations", examples: [{ reason: "maintenance", channel: "webhook" }] })

const one = handCommands.map((command) =>
  HttpApiEndpoint.post(command, `${PATH}/:id/${command}`, {
    params: idParam,
    payload: CommandRequest,
    success: Overview,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(about("endpoints:write", summaries[command]))
)

const all = handCommands.map((command) =>
  HttpApiEndpoint.post(`${command}All`, `${PATH}/${command}`, {
    payload: CommandAll,
    success: Schema.Struct({
      commanded: Schema.Int.annotate({ description: "How many destinations were commanded, changed or not." })
    }).annotate({ identifier: "CommandedDestinations" }),
    error: bodyErrors
  }).annotateMerge(about("endpoints:write", summariesOfAll[command]))
)

export const overviewApi = HttpApiGroup.make("destinations")
  .add(
    HttpApiEndpoint.get("list", PATH, {
      query: {
        ...paging,
        sort: maybe(Schema.Literals(sorts), "The longest backlog first, the oldest due message first, or by id."),
        channel: filters.channel,
        paused: switchParameter("Only those that are paused, or only the others."),
        circuit: maybe(Schema.Literals(circuitStatuses), "Only those whose circuit is so."),
        waiting: switchParameter("Only those for which something waits, or only the others.")
      },
      success: projectedListOf(Overview)
    })
      .annotateMerge(
        about(
          "endpoints:read",
          "Destinations of all kinds: what holds each up, and how much waits. By id, by what waits, or by the oldest. Rates come from a projection: asOf is theirs."
        )
      )
      .annotateMerge(ofAllOrgs),
    HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: OverviewWithHistory }).annotateMerge(
      about("endpoints:read", "One destination of any kind, with what happened to it.")
    ),
    ...one,
    ...all
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Destinations", "Destinations of all kinds: what holds each up, and how much waits."))

type Request = HttpServerRequest.HttpServerRequest

const jsonOf = (
  { destination, name, url, pause, disabling, circuit, waiting, oldestDueAt, inFlight, ...health }: View,
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
    { of: Overview, json: (overview) => jsonOf(overview, channels) }
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

export const layer = HttpApiBuilder.group(base.add(overviewApi), "destinations", (handlers) =>
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
