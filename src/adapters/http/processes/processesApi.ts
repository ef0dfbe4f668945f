/** The list of processes as data, for the operator. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OperatorAccess } from "../server/auth.ts"
import { about } from "../server/endpoints.ts"
import { listOf, Moment } from "../server/fields.ts"
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

const list = HttpApiEndpoint.get("list", "/processes", {
  success: Schema.Struct({ ...listOf(Process).fields, troubles: troublesInFull })
}).annotateMerge(
  about(
    "The processes of this Posthaste: what each does, since when, and when it was last seen. And what is wrong with it as a whole."
  )
)

export const processesApi = HttpApiGroup.make("processes")
  .add(list)
  .middleware(OperatorAccess)
  .annotateMerge(OpenApi.annotations({ title: "Processes", description: "For the operator's key only." }))
