/** `posthaste projections`. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { Projection, Stall } from "../../sdk/src/api.ts"
import { operatorFlags, operatorService, switchFlag } from "./service.ts"
import { bar, distance, failed, grouped, note, print, printJson, table } from "./terminal.ts"

interface Projections {
  readonly items: ReadonlyArray<Projection>
  readonly stall: Stall | null
}

const rowOf = ({ name, live, build }: Projection): ReadonlyArray<string> => [
  name,
  live === null ? "not begun" : `generation ${live.generation}`,
  live === null ? "" : `${grouped(live.facts)} facts`,
  build === null
    ? ""
    : `building ${Math.floor((build.facts / Math.max(build.total, 1)) * 100)} %${leftOf(build.secondsLeft)}`
]

const leftOf = (seconds: number | null) => (seconds === null ? "" : `, ${distance(seconds * 1000)} left`)

const list = Command.make("list", operatorFlags, ({ json, ...flags }) =>
  Effect.gen(function* () {
    const service = yield* operatorService(flags)
    const found = yield* service.get<Projections>("/projections")
    if (json) return yield* printJson(found)
    yield* print(table(found.items.map(rowOf)))
    const { stall } = found
    if (stall !== null) {
      yield* note(
        `the projections stand still: a transaction of process ${stall.pid} (${stall.application}) has been open for ${distance(stall.seconds * 1000)}`
      )
    }
  })
).pipe(
  Command.withDescription("Every projection and its progress. Needs the operator's key."),
  Command.withShortDescription("List projections")
)

const FOLLOW_EVERY = "500 millis"

const rebuild = Command.make(
  "rebuild",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Such as messages; posthaste projections list names them")
    ),
    detach: switchFlag("detach", "Do not wait until it is done; it goes on in the service"),
    ...operatorFlags
  },
  Effect.fnUntraced(function* ({ name, detach, json, ...flags }) {
    const service = yield* operatorService(flags)
    const path = `/projections/${encodeURIComponent(name)}`
    const begun = yield* service.post<Projection>(`${path}/rebuild`, {})
    const wanted = begun.build?.generation ?? begun.live?.generation
    if (detach) return yield* json ? printJson(begun) : print(`${name} is being rebuilt`)
    const progress = yield* bar(name)
    let now = begun
    while (now.build !== null) {
      const { facts, total, secondsLeft } = now.build
      yield* progress.show(
        facts,
        Math.max(total, facts),
        secondsLeft === null ? "" : `${distance(secondsLeft * 1000)} left`
      )
      yield* Effect.sleep(FOLLOW_EVERY)
      now = yield* service.get<Projection>(path)
    }
    yield* progress.end
    if (json) return yield* printJson(now)
    if (now.live?.generation !== wanted) {
      return yield* failed(`${name} was not rebuilt: its rows are of generation ${now.live?.generation}`)
    }
    yield* print(`${name} was rebuilt from ${grouped(now.live?.facts ?? 0)} facts`)
  })
).pipe(
  Command.withDescription(
    "Rebuild a projection from the facts. The old rows serve until the new ones have caught up and replace them. Needs the operator's key."
  ),
  Command.withShortDescription("Rebuild a projection")
)

export const projections = Command.make("projections").pipe(
  Command.withDescription(
    "The rows that lists and counts read, folded from the facts: see their progress and rebuild them."
  ),
  Command.withShortDescription("List and rebuild projections"),
  Command.withSubcommands([list, rebuild])
)
