/** `posthaste status`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { type List, operatorFlags, operatorService, type Trouble, troubleLine } from "./service.ts"
import { failed, fromNow, paints, print, printJson, table } from "./terminal.ts"

interface Process {
  readonly host: string
  readonly pid: number
  readonly roles: ReadonlyArray<string>
  readonly version: string
  readonly since: string
  readonly lastSeen: string
  readonly alive: boolean
}

interface Installation extends List<Process> {
  readonly troubles: ReadonlyArray<Trouble>
}

export const status = Command.make(
  "status",
  operatorFlags,
  Effect.fnUntraced(function* ({ json, ...flags }) {
    const found = yield* (yield* operatorService(flags)).get<Installation>("/processes")
    if (json) yield* printJson(found)
    else {
      const paint = yield* paints
      const now = Date.now()
      const rows = found.items.map(({ host, pid, roles, version, since, lastSeen, alive }) => [
        alive ? paint.green("alive") : paint.red("gone "),
        `${host} ${pid}`,
        roles.join(","),
        version,
        `since ${since}`,
        alive ? "" : `last seen ${fromNow(lastSeen, now)}`
      ])
      const troubles = found.troubles.map((trouble) => paint.red(troubleLine(trouble, now)))
      yield* print([...(rows.length === 0 ? [] : [table(rows)]), ...troubles].join("\n"))
    }
    const [first] = found.troubles
    if (first !== undefined)
      yield* failed(`${found.troubles.length === 1 ? "something is" : "several things are"} wrong`)
  })
).pipe(
  Command.withDescription(
    "Which processes there are, and what is wrong as a whole: no living worker, projector or relay, projections that are behind, old transactions. Ends with 1 when something is. Needs the operator's key."
  ),
  Command.withShortDescription("Show processes, and what is wrong as a whole")
)
