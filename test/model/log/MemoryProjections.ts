import { Effect, Layer } from "effect"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { firstRun, Memory } from "../Memory.ts"

/** The runs of projections in a list. Nothing ever keeps this log from being read. */
export const layer = Layer.effect(
  Projections,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { runs } = tables
    const indexOf = (name: string, live: boolean) => runs.findIndex((run) => run.name === name && run.live === live)

    return Projections.of({
      runs: Effect.sync(() =>
        runs.toSorted((a, b) => (a.name === b.name ? Number(b.live) - Number(a.live) : a.name < b.name ? -1 : 1))
      ),
      build: (name, version, total) =>
        Effect.sync(() => {
          const live = runs[indexOf(name, true)]
          const index = indexOf(name, false)
          const under = runs[index]
          if (under !== undefined && under.version >= version) return under
          const run =
            live === undefined
              ? { ...firstRun(name, version, now()), total }
              : {
                  ...firstRun(name, version, now()),
                  total,
                  live: false,
                  generation: (under ?? live).generation + 1
                }
          if (under === undefined) runs.push(run)
          else runs[index] = run
          return run
        }),
      swap: (name, generation) =>
        Effect.sync(() => {
          const live = runs[indexOf(name, true)]
          const build = runs[indexOf(name, false)]
          if (live === undefined || build === undefined || build.generation !== generation) return false
          if (build.position !== live.position) return false
          runs[indexOf(name, false)] = { ...build, live: true }
          runs.splice(runs.indexOf(live), 1)
          return true
        }),
      stall: () => Effect.succeed(null)
    })
  })
)
