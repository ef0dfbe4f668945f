/** The endpoints of projections as data: their requests and answers, for the operator. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OperatorAccess } from "../server/auth.ts"
import { about } from "../server/endpoints.ts"
import { Moment } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

const run = {
  generation: Schema.Int.annotate({ description: "Counts builds: these rows have been built anew so often." }),
  version: Schema.Int.annotate({ description: "Of the fold that made these rows." }),
  facts: Schema.Int.annotate({ description: "How many facts it has read." }),
  startedAt: Moment
}

const Live = Schema.Struct(run).annotate({ identifier: "LiveProjection" })

const Build = Schema.Struct({
  ...run,
  total: Schema.Int.annotate({ description: "About how many facts there were when it began." }),
  factsPerSecond: Schema.NullOr(Schema.Int),
  secondsLeft: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "ProjectionBuild" })

const Projection = Schema.Struct({
  name: Schema.String,
  live: Schema.NullOr(Live).annotate({ description: "What people read; null until a projector has begun with it." }),
  build: Schema.NullOr(Build).annotate({ description: "What is being built beside it, to take its place." })
}).annotate({ identifier: "Projection" })

const Stall = Schema.Struct({
  pid: Schema.Int,
  application: Schema.String,
  since: Moment,
  seconds: Schema.Int
}).annotate({
  identifier: "Stall",
  description: "An open transaction of the database server. No projection and no feed reads on until it has ended."
})

const PATH = "/projections"
const name = { name: Schema.String }

const list = HttpApiEndpoint.get("list", PATH, {
  success: Schema.Struct({ items: Schema.Array(Projection), stall: Schema.NullOr(Stall) })
}).annotateMerge(
  about("Every projection: how far it is, and what keeps all of them from reading on, if anything does.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:name`, {
  params: name,
  success: Projection,
  error: problemOf(404)
}).annotateMerge(about("One projection, and how far its build is."))

const rebuild = HttpApiEndpoint.post("rebuild", `${PATH}/:name/rebuild`, {
  params: name,
  success: Projection.pipe(HttpApiSchema.status(202)),
  error: problemOf(404)
}).annotateMerge(
  about(
    "Build a projection anew beside the one that serves. It takes its place when it has caught up. Asking again shows the same build."
  )
)

export const projectionsApi = HttpApiGroup.make("projections")
  .add(list, get, rebuild)
  .middleware(OperatorAccess)
  .annotateMerge(OpenApi.annotations({ title: "Projections", description: "For the operator's key only." }))
