/** What can be asked about destinations of all kinds at once, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { handCommands } from "../../../application/destinations/overview.ts"
import { sorts } from "../../../application/ports/Backlogs.ts"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { freshness, idParam, Moment, optional, paging, projectedListOf, Reason, Text } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"
import { states } from "./destinationsApi.ts"

const destination = {
  id: Schema.String,
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

/** The text of a switch in a query. */
const Switch = Schema.Literals(["true", "false"])

const PATH = "/destinations"

const list = HttpApiEndpoint.get("list", PATH, {
  query: {
    ...paging,
    sort: Schema.optionalKey(Schema.Literals(sorts)),
    channel: Schema.optionalKey(ChannelName),
    paused: Schema.optionalKey(Switch),
    circuit: Schema.optionalKey(Schema.Literals(circuitStatuses)),
    waiting: Schema.optionalKey(Switch)
  },
  success: projectedListOf(Overview)
}).annotateMerge(
  about(
    "Destinations of all kinds: what holds each up, and how much waits. By id, by what waits, or by the oldest. Rates come from a projection: asOf is theirs."
  )
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: OverviewWithHistory }).annotateMerge(
  about("One destination of any kind, with what happened to it.")
)

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

export const CommandAll = Schema.Struct({
  ...Reason.fields,
  channel: optional(ChannelName),
  stoppedFor: optional(text(500)).annotateKey({
    description: "Only those that were paused or held with exactly this reason."
  })
}).annotate({ identifier: "CommandAllDestinations" })

const one = handCommands.map((command) =>
  HttpApiEndpoint.post(command, `${PATH}/:id/${command}`, {
    params: idParam,
    payload: Reason.annotate({ identifier: "DestinationCommand" }),
    success: Overview,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(about(summaries[command]))
)
const all = handCommands.map((command) =>
  HttpApiEndpoint.post(`${command}All`, `${PATH}/${command}`, {
    payload: CommandAll,
    success: Schema.Struct({
      commanded: Schema.Int.annotate({ description: "How many destinations were commanded, changed or not." })
    }).annotate({ identifier: "CommandedDestinations" }),
    error: bodyErrors
  }).annotateMerge(about(summariesOfAll[command]))
)

export const overviewApi = HttpApiGroup.make("overview")
  .add(list, get, ...one, ...all)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Destinations" }))
