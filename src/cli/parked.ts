/** `posthaste parked` and `posthaste repair`. */
import { Effect, Option, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import type { ParkedStream } from "../../sdk/src/api.ts"
import { previewRepair, repair as repairAll } from "../application/truth/repair.ts"
import { json, operatorFlags, operatorService, switchFlag } from "./service.ts"
import { storeLayer } from "./store.ts"
import { failed, fromNow, grouped, paints, print, printJsonLine, table } from "./terminal.ts"

const list = Command.make("list", operatorFlags, ({ json, ...flags }) =>
  Effect.gen(function* () {
    const service = yield* operatorService(flags)
    const items = service.items<ParkedStream>("/parked", { limit: "200" })
    if (json) return yield* Stream.runForEach(items, printJsonLine)
    const found = yield* Stream.runCollect(items)
    if (found.length === 0) return yield* print((yield* paints).green("nothing is parked"))
    const now = Date.now()
    yield* print(table(found.map(({ stream, reason, at }) => [stream, reason, `since ${fromNow(at, now)}`])))
  })
).pipe(
  Command.withDescription("Every stream of facts that can't be processed, of all orgs. Needs the operator's key."),
  Command.withShortDescription("List streams that can't be processed")
)

const retry = Command.make(
  "retry",
  {
    stream: Argument.String("stream").pipe(Argument.withDescription("Such as message-<id>"), Argument.optional),
    all: switchFlag("all", "Every stream that is parked"),
    ...operatorFlags
  },
  Effect.fnUntraced(function* ({ stream, all, json, ...flags }) {
    const one = Option.getOrNull(stream)
    if ((one === null) !== all) return yield* failed("name one stream, or all of them with --all")
    const service = yield* operatorService(flags)
    const path = one === null ? "/parked/retry" : `/parked/retry?stream=${encodeURIComponent(one)}`
    const { streams } = yield* service.post<{ readonly streams: number }>(path, {})
    if (json) return yield* printJsonLine({ streams })
    yield* print(`${grouped(streams)} ${streams === 1 ? "stream is" : "streams are"} tried again`)
  })
).pipe(
  Command.withDescription(
    "Try streams again now that are parked, after what was stored of them was repaired or a release that can read it was started. One that still can't be processed is parked again. Needs the operator's key."
  ),
  Command.withShortDescription("Try parked streams again")
)

export const parked = Command.make("parked").pipe(
  Command.withDescription("Streams that can't be processed: they hold up nothing else, and are tried again by hand."),
  Command.withShortDescription("Streams that can't be processed"),
  Command.withSubcommands([list, retry])
)

export const repair = Command.make(
  "repair",
  { preview: switchFlag("preview", "Count what is parked or lost, and change nothing"), json },
  Effect.fnUntraced(function* ({ preview, json }) {
    if (preview) {
      const { parked, lost } = yield* previewRepair
      if (json) return yield* printJsonLine({ type: "preview", parked, lost })
      return yield* print(
        `${grouped(parked)} streams are parked, ${grouped(lost)} open messages are in no place of the queue (at most 1,000 are counted)`
      )
    }
    const unparked = yield* repairAll
    if (json) return yield* printJsonLine({ type: "repaired", unparked })
    yield* print(
      `the queue is as the facts say, ${grouped(unparked)} streams are parked no longer; the lists are built anew`
    )
  })
).pipe(
  Command.provide(storeLayer(true)),
  Command.withDescription(
    "Rebuild queue and lists from the facts, which are never changed. May run beside a working Posthaste; reads every stream once. A message whose place in its line is lost comes back at the end of the line."
  ),
  Command.withShortDescription("Rebuild queue and lists from the facts")
)
