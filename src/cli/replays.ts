/** `posthaste replays`, and following a replay to its end. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { Replay } from "../../sdk/src/api.ts"
import { plainVerbs } from "./resources.ts"
import { noteLateness, orgService, type Service, serviceFlags, switchFlag } from "./service.ts"
import { bar, failed, fromNow, grouped, print, printJson } from "./terminal.ts"

export const detach = switchFlag("detach", "Do not wait for its end; the replay goes on in the service")

const FOLLOW_EVERY = "300 millis"

const follow = Effect.fnUntraced(function* (service: Service, first: Replay) {
  const progress = yield* bar("under way")
  let replay = first
  while (replay.status === "RUNNING") {
    yield* progress.show(replay.replayed + replay.skipped, replay.matched)
    yield* Effect.sleep(FOLLOW_EVERY)
    replay = yield* service.get<Replay>(`/replays/${replay.id}`)
  }
  yield* progress.end
  return replay
})

/** `left`: why some were skipped; `done`: the word for the rest. */
export const finish = Effect.fnUntraced(function* (
  service: Service,
  begun: Replay,
  {
    detach,
    json,
    left,
    done = "replayed"
  }: { readonly detach: boolean; readonly json: boolean; readonly left: string; readonly done?: string }
) {
  if (detach) {
    const count = `${begun.searching ? "at least " : ""}${grouped(begun.matched)}`
    return yield* json ? printJson(begun) : print(`replay ${begun.id} of ${count} is under way`)
  }
  const ended = yield* follow(service, begun)
  if (json) return yield* printJson(ended)
  const skipped = ended.skipped === 0 ? "" : `, ${grouped(ended.skipped)} ${left}`
  yield* print(`replay ${ended.id} ${ended.status.toLowerCase()}: ${grouped(ended.replayed)} ${done}${skipped}`)
  if (ended.status !== "COMPLETED") return yield* failed(`the replay was ${ended.status.toLowerCase()}`)
})

const deeds: Readonly<Record<string, string>> = {
  replay: "replayed",
  send: "sent elsewhere",
  dismiss: "dismissed",
  cancel: "cancelled"
}

const progressOf = ({ does, replayed, skipped, matched, searching }: Replay): string =>
  `${grouped(replayed)} of ${searching ? "at least " : ""}${grouped(matched)} ${deeds[does] ?? does}` +
  (skipped === 0 ? "" : `, ${grouped(skipped)} left out`)

const outcomeOf = ({ arrived, sent, failed, waiting, ended }: NonNullable<Replay["outcome"]>): string =>
  [
    `${grouped(arrived)} arrived`,
    ...(sent === 0 ? [] : [`${grouped(sent)} taken, not yet proven`]),
    `${grouped(failed)} failed again`,
    `${grouped(waiting)} under way`,
    ...(ended === 0 ? [] : [`${grouped(ended)} cancelled or expired`])
  ].join(", ")

const textOf = (replay: Replay): string => {
  const now = Date.now()
  const { id, status, to, reason, requestedAt, endedAt, outcome } = replay
  return [
    `${status}  ${id}`,
    `requested ${fromNow(requestedAt, now)}${endedAt === null ? "" : `, ended ${fromNow(endedAt, now)}`}${reason === null ? "" : `: ${reason}`}`,
    `${progressOf(replay)}${to === null ? "" : ` (to ${to})`}`,
    ...(outcome === null ? [] : [`since then: ${outcomeOf(outcome)}`])
  ].join("\n")
}

const show = Command.make(
  "show",
  { id: Argument.String("id").pipe(Argument.withDescription("The replay's id")), ...serviceFlags },
  Effect.fnUntraced(function* ({ id, json, ...flags }) {
    const found = yield* (yield* orgService(flags)).get<Replay>(`/replays/${encodeURIComponent(id)}`)
    yield* noteLateness(found.outcome ?? {})
    yield* json ? printJson(found) : print(textOf(found))
  })
).pipe(Command.withDescription("How far a replay is, and what became since of the messages that it sent again."))

export const replays = Command.make("replays").pipe(
  Command.withDescription("Look at replays: how far each is, and what became of the messages since."),
  Command.withShortDescription("Look at replays and their outcome"),
  Command.withSubcommands([show, ...plainVerbs("replays")])
)
