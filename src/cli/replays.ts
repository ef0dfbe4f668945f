/** What the commands that send many messages again have in common: the replay that the service makes of it, followed to its end. */
import { Effect } from "effect"
import { type Service, switchFlag } from "./service.ts"
import { bar, failed, grouped, print, printJson } from "./terminal.ts"

export interface Replay {
  readonly id: string
  readonly status: string
  /** So far, while it is searching. */
  readonly matched: number
  readonly searching: boolean
  readonly replayed: number
  readonly skipped: number
}

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

/** `left` says why some were skipped; `done` what became of the others, where they were not replayed. */
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
