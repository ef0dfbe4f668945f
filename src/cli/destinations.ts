/** `posthaste destinations`. */
import { Effect, Option, Record, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Destination, DestinationWithHistory } from "../../sdk/src/api.ts"
import { WAITING_MAX } from "../application/ports/Backlogs.ts"
import { plainVerbs } from "./resources.ts"
import { noteLateness, optionalText, orgService, serviceFlags, switchFlag } from "./service.ts"
import {
  colourOf,
  distance,
  failed,
  fromNow,
  grouped,
  inLine,
  note,
  type Paints,
  paints,
  print,
  printJson,
  printJsonLine,
  table
} from "./terminal.ts"

const stateOf = ({ state, circuit }: Destination) => (state === "ACTIVE" ? circuit.status : state)

const byOf = (by: string | null) => (by === null ? "" : ` by ${by}`)

/** The hold of a destination in words, or empty. */
const holdOf = ({ pause, disabled, circuit }: Destination, now: number): string => {
  const paused =
    pause === null
      ? []
      : [`paused ${fromNow(pause.since, now)}${byOf(pause.by)}${pause.reason === null ? "" : `: ${pause.reason}`}`]
  if (disabled !== null) paused.push(`disabled ${fromNow(disabled.since, now)}: ${disabled.reason}`)
  if (circuit.status === "CLOSED") return paused.join("; ")
  const since = circuit.since === null ? "" : ` ${fromNow(circuit.since, now)}`
  const until = circuit.until === null ? "" : `, next probe ${fromNow(circuit.until, now)}`
  return [
    ...paused,
    `${circuit.status}${since}${byOf(circuit.by)}${circuit.cause === null ? "" : `: ${circuit.cause}`}${until}`
  ].join("; ")
}

const flowOf = ({ waiting, perSecond, drainsInSeconds }: Destination): string => {
  const soonest = waiting >= WAITING_MAX ? "no sooner than " : ""
  const drains =
    drainsInSeconds === null || drainsInSeconds === 0 ? "" : `, empty ${soonest}in ${distance(drainsInSeconds * 1000)}`
  return `${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond)}/s${drains}`
}

const rowOf = (each: Destination, now: number, paint: Paints): ReadonlyArray<string> => [
  colourOf(paint, stateOf(each))(stateOf(each).padEnd(9)),
  each.id,
  each.channel,
  `${grouped(each.waiting)} waiting`,
  each.oldestDueAt === null ? "" : `due ${fromNow(each.oldestDueAt, now)}`,
  flowOf(each),
  each.name,
  holdOf(each, now)
]

const list = Command.make(
  "list",
  {
    sort: Flag.Literals("sort", ["waiting", "oldest", "id"]).pipe(
      Flag.withDescription("The longest backlog first, the oldest due message first, or by id"),
      Flag.withDefault("waiting")
    ),
    channel: optionalText("channel", "Only those of this channel"),
    circuit: optionalText("circuit", "Only those whose circuit is CLOSED, OPEN, HALF_OPEN or HELD"),
    paused: switchFlag("paused", "Only those that are paused"),
    waiting: switchFlag("waiting", "Only those for which something waits"),
    limit: Flag.Int("limit").pipe(Flag.withDescription("The largest number to list"), Flag.withDefault(50)),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ sort, channel, circuit, paused, waiting, limit, json, url, org }) {
    const service = yield* orgService({ url, org })
    const query = {
      sort,
      ...Record.getSomes({ channel, circuit }),
      ...(paused && { paused: "true" }),
      ...(waiting && { waiting: "true" }),
      limit: String(Math.min(limit, 200))
    }
    const found = service.items<Destination>("/destinations", query).pipe(Stream.take(limit))
    if (json) return yield* Stream.runForEach(found, printJsonLine)
    const paint = yield* paints
    const now = Date.now()
    const rows = yield* Stream.runCollect(Stream.map(found, (each) => rowOf(each, now, paint)))
    yield* rows.length === 0 ? note("there are no destinations that match") : print(table(rows))
  })
).pipe(
  Command.withDescription("Destinations of all kinds, the longest backlog first. With --json one a line."),
  Command.withShortDescription("List destinations: what holds them up, how much waits")
)

const id = Argument.String("id").pipe(Argument.withDescription("The destination's id"))

const textOf = (found: DestinationWithHistory, paint: Paints): string => {
  const now = Date.now()
  const hold = holdOf(found, now)
  return [
    `${colourOf(paint, stateOf(found))(paint.bold(stateOf(found)))}  ${found.id}`,
    `${found.channel}: ${found.name}${found.url === null || found.url === found.name ? "" : ` (${found.url})`}`,
    `${grouped(found.waiting)} waiting${found.oldestDueAt === null ? "" : `, the first due ${fromNow(found.oldestDueAt, now)}`} · ${grouped(found.inFlight)} with workers`,
    `${flowOf(found)}, last hour ${grouped(found.lastHour.succeeded)} succeeded and ${grouped(found.lastHour.failed)} failed`,
    ...(hold === "" ? [] : [`why: ${hold}`]),
    "",
    ...found.history.map(
      ({ at, type, by, reason }) => `${paint.dim(at)}  ${type}${byOf(by)}${reason === null ? "" : `: ${reason}`}`
    )
  ]
    .map(inLine)
    .join("\n")
}

const show = Command.make(
  "show",
  { id, ...serviceFlags },
  Effect.fnUntraced(function* ({ id, json, ...flags }) {
    const service = yield* orgService(flags)
    const found = yield* service.get<DestinationWithHistory>(`/destinations/${encodeURIComponent(id)}`)
    yield* noteLateness(found)
    yield* json ? printJson(found) : print(textOf(found, yield* paints))
  })
).pipe(Command.withDescription("One destination, and what happened to it and its circuit."))

const command = (name: string, description: string) =>
  Command.make(
    name,
    {
      id: id.pipe(Argument.optional),
      all: switchFlag("all", "All destinations of the org, except those that get alerts"),
      channel: optionalText("channel", "With --all: only those of this channel"),
      stoppedFor: optionalText(
        "stopped-for",
        "With --all: only those that were paused or held with exactly this reason"
      ),
      reason: optionalText("reason", "The reason to keep with it"),
      ...serviceFlags
    },
    Effect.fnUntraced(function* ({ id, all, channel, stoppedFor, reason, json, ...flags }) {
      if (Option.isSome(id) === all) return yield* failed(`name a destination, or all of them with --all`)
      const service = yield* orgService(flags)
      if (Option.isSome(id)) {
        const said = Record.getSomes({ reason })
        const path = `/destinations/${encodeURIComponent(id.value)}/${name}`
        const after = yield* service.post<Destination>(path, said)
        return yield* json
          ? printJson(after)
          : print(`${stateOf(after)}  ${after.id}  ${after.name}, ${grouped(after.waiting)} waiting`)
      }
      const said = Record.getSomes({ reason, channel, stoppedFor })
      const answer = yield* service.post<{ readonly commanded: number }>(`/destinations/${name}`, said)
      yield* json ? printJson(answer) : print(`${name}: ${grouped(answer.commanded)} destinations`)
    })
  ).pipe(Command.withDescription(description))

export const destinations = Command.make("destinations").pipe(
  Command.withDescription("Look at destinations of all kinds, and stop and start them, one or all of an org."),
  Command.withShortDescription("Look at destinations; pause, resume, hold and reset them"),
  Command.withSubcommands([
    list,
    show,
    ...plainVerbs("destinations", ["list"]),
    command("pause", "Send nothing to a destination until it is resumed. Its messages wait."),
    command("resume", "Send to a destination again, beginning with what has waited."),
    command("enable", "Send to a destination again that was disabled, beginning with what has waited."),
    command("hold", "Stop calling a destination until its circuit is reset."),
    command("reset", "Close the circuit of a destination by hand. Traffic comes back slowly.")
  ])
)
