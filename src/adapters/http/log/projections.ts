/** The handlers of projections, for the operator. */
import { DateTime, Duration, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import {
  listProjections,
  type ProjectionView,
  readProjection,
  rebuildProjection,
  timeLeft
} from "../../../application/log/projections/rebuild.ts"
import type { Run, Stall } from "../../../application/ports/Projections.ts"
import { Api } from "../server/Api.ts"
import { answer, created } from "../server/problem.ts"

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

const stallJson = Effect.fnUntraced(function* (stall: Stall) {
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

export const layer = HttpApiBuilder.group(Api, "projections", (handlers) =>
  handlers
    .handle("list", () => answer(list))
    .handle("get", ({ params }) => answer(get(params.name)))
    .handleRaw("rebuild", ({ params }) => answer(rebuild(params.name)))
)
