/** The list of processes, for the operator. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Processes } from "../../../application/ports/Processes.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { OperatorAccess } from "../server/auth.ts"
import { base, titled, words } from "../server/endpoints.ts"
import { listOf, Moment } from "../server/fields.ts"
import { onePage } from "../server/listPages.ts"
import { answer } from "../server/problem.ts"
import { troublesInFull } from "./troublesApi.ts"

const Process = Schema.Struct({
  id: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  roles: Schema.Array(Schema.String),
  version: Schema.String.annotate({ description: "Of the release that it runs." }),
  broker: Schema.Boolean.annotate({ description: "It knows Posthaste's own RabbitMQ (AMQP_URL)." }),
  since: Moment,
  lastSeen: Moment,
  alive: Schema.Boolean.annotate({
    description: "False when the process has been silent for 20 s. An hour later it is listed no more."
  }),
  clockOffsetMs: Schema.NullOr(Schema.Int).annotate({
    description: "How far the clock of its machine is ahead of the database's; null until it was measured."
  })
}).annotate({ identifier: "Process" })

export const processesApi = HttpApiGroup.make("processes")
  .add(
    HttpApiEndpoint.get("list", "/processes", {
      success: Schema.Struct({ ...listOf(Process).fields, troubles: troublesInFull }).annotate({
        identifier: "ProcessList"
      })
    }).annotateMerge(
      words(
        "The processes of this Posthaste: what each does, since when, and when it was last seen. And what is wrong with it as a whole."
      )
    )
  )
  .middleware(OperatorAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Processes", "For the operator's key only."))

const list = Effect.gen(function* () {
  const processes = yield* (yield* Processes).list
  return { ...onePage(processes), troubles: yield* (yield* Troubles).now }
})

export const layer = HttpApiBuilder.group(base.add(processesApi), "processes", (handlers) =>
  handlers.handle("list", () => answer(list))
)
