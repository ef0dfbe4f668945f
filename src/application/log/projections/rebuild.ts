/** The operator's commands on projections: the progress of each, and a rebuild of one while it serves. */
import { Duration, Effect, Schema } from "effect"
import { EventStore } from "../../ports/EventStore.ts"
import { Projections, type Run } from "../../ports/Projections.ts"
import { Pulse } from "../../ports/Pulse.ts"
import { projections } from "./all.ts"
import type { Projection } from "./Projection.ts"

export class ProjectionNotFound extends Schema.TaggedError<ProjectionNotFound>()("ProjectionNotFound", {
  name: Schema.String
}) {}

export interface ProjectionView {
  readonly name: string
  readonly live: Run | null
  readonly build: Run | null
}

const STALL_SHOWN_AFTER = Duration.seconds(1)

export const viewOf = (name: string, runs: ReadonlyArray<Run>): ProjectionView => ({
  name,
  live: runs.find((run) => run.name === name && run.live) ?? null,
  build: runs.find((run) => run.name === name && !run.live) ?? null
})

export const beginBuild = Effect.fnUntraced(function* ({ name, version }: Pick<Projection<never>, "name" | "version">) {
  const { facts } = yield* (yield* EventStore).extent
  return yield* (yield* Projections).build(name, version, facts)
})

export const listProjections = Effect.gen(function* () {
  const store = yield* Projections
  const runs = yield* store.runs
  return { items: projections.map(({ name }) => viewOf(name, runs)), stall: yield* store.stall(STALL_SHOWN_AFTER) }
})

export const readProjection = Effect.fnUntraced(function* (name: string) {
  if (!projections.some((projection) => projection.name === name)) return yield* new ProjectionNotFound({ name })
  return viewOf(name, yield* (yield* Projections).runs)
})

export const rebuildProjection = Effect.fnUntraced(function* (name: string) {
  const projection = projections.find((one) => one.name === name)
  if (projection === undefined) return yield* new ProjectionNotFound({ name })
  yield* beginBuild(projection)
  const begun = yield* readProjection(name)
  yield* (yield* Pulse).wake("jobs")
  return begun
})

/** The seconds that a build still needs at its present speed; null while that is unknown. */
export const timeLeft = ({ facts, total, factsPerSecond }: Run): Duration.Duration | null =>
  factsPerSecond === null || factsPerSecond <= 0
    ? null
    : Duration.seconds(Math.max(0, Math.ceil((total - facts) / factsPerSecond)))
