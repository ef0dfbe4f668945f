/** The progress and rebuild of projections, for the operator. */
import { DateTime, Duration, Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import {
  listProjections,
  type ProjectionView,
  readProjection,
  rebuildProjection,
  timeLeft
} from "../../../application/log/projections/rebuild.ts"
import type { Run, Stall as StallView } from "../../../application/ports/Projections.ts"
import { OperatorAccess } from "../server/auth.ts"
import { base, titled, words } from "../server/endpoints.ts"
import { Moment } from "../server/fields.ts"
import { answer, created, problemOf } from "../server/problem.ts"

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

const name = { name: Schema.String.annotateKey({ description: "The projection, such as messages." }) }

export const projectionsApi = HttpApiGroup.make("projections")
  .add(
    HttpApiEndpoint.get("list", PATH, {
      success: Schema.Struct({ items: Schema.Array(Projection), stall: Schema.NullOr(Stall) }).annotate({
        identifier: "ProjectionList"
      })
    }).annotateMerge(
      words("Every projection: how far it is, and what keeps all of them from reading on, if anything does.")
    ),
    HttpApiEndpoint.get("get", `${PATH}/:name`, {
      params: name,
      success: Projection,
      error: problemOf(404)
    }).annotateMerge(words("One projection, and how far its build is.")),
    HttpApiEndpoint.post("rebuild", `${PATH}/:name/rebuild`, {
      params: name,
      success: Projection.pipe(HttpApiSchema.status(202)),
      error: problemOf(404)
    }).annotateMerge(
      words(
        "Build a projection anew beside the one that serves. It takes its place when it has caught up. Asking again shows the same build."
      )
    )
  )
  .middleware(OperatorAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Projections", "For the operator's key only."))

const liveJson = ({ generation, version, facts, startedAt }: Run) => ({ generation, version, facts, startedAt })

const buildJson = (run: Run) => {
  const left = timeLeft(run)
  return {
    ...liveJson(run),
    // The build also reads facts that were stored since it began.
    total: Math.max(run.total, run.facts),
    factsPerSecond: run.factsPerSecond === null ? null : Math.round(run.factsPerSecond),
    secondsLeft: left === null ? null : Duration.toSeconds(left)
  }
}

const projectionJson = ({ name, live, build }: ProjectionView) => ({
  name,
  live: live === null ? null : liveJson(live),
  build: build === null ? null : buildJson(build)
})

const stallJson = Effect.fnUntraced(function* (stall: StallView) {
  const age = DateTime.distance(stall.since, yield* DateTime.now)
  return { ...stall, seconds: Math.round(Duration.toSeconds(age)) }
})

const list = Effect.gen(function* () {
  const { items, stall } = yield* listProjections
  return { items: items.map(projectionJson), stall: stall === null ? null : yield* stallJson(stall) }
})

const get = (name: string) => Effect.map(readProjection(name), projectionJson)

const rebuild = Effect.fnUntraced(function* (name: string) {
  return created(`/projections/${name}`, projectionJson(yield* rebuildProjection(name)), 202)
})

export const layer = HttpApiBuilder.group(base.add(projectionsApi), "projections", (handlers) =>
  handlers
    .handle("list", () => answer(list))
    .handle("get", ({ params }) => answer(get(params.name)))
    .handleRaw("rebuild", ({ params }) => answer(rebuild(params.name)))
)
