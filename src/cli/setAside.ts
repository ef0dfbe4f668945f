/** `posthaste set-aside`: the messages that can't be processed, and trying them again after a repair. */
import { Effect, Option, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import type { SetAsideMessage } from "../../sdk/src/api.ts"
import { operatorFlags, operatorService, switchFlag } from "./service.ts"
import { failed, fromNow, grouped, paints, print, printJsonLine, table } from "./terminal.ts"

const list = Command.make("list", operatorFlags, ({ json, ...flags }) =>
  Effect.gen(function* () {
    const service = yield* operatorService(flags)
    const items = service.items<SetAsideMessage>("/set-aside", { limit: "200" })
    if (json) return yield* Stream.runForEach(items, printJsonLine)
    const found = yield* Stream.runCollect(items)
    if (found.length === 0) return yield* print((yield* paints).green("nothing is set aside"))
    const now = Date.now()
    yield* print(
      table(
        found.map(({ id, stream, parts, orgId, reason, detail, since, tries, nextTryAt }) => [
          id ?? stream,
          parts.join(" "),
          orgId ?? "unknown org",
          reason,
          `since ${fromNow(since, now)}, tried ${tries === 1 ? "once" : `${tries} times`}, again ${fromNow(nextTryAt, now)}`,
          detail
        ])
      )
    )
  })
).pipe(
  Command.withDescription(
    "Every message and every other stream of facts that can't be processed, of all orgs, with who sets it aside and why. Needs the operator's key."
  ),
  Command.withShortDescription("List messages that can't be processed")
)

const retry = Command.make(
  "retry",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The message's id"), Argument.optional),
    all: switchFlag("all", "Every message that is set aside"),
    ...operatorFlags
  },
  Effect.fnUntraced(function* ({ id, all, json, ...flags }) {
    const one = Option.getOrNull(id)
    if ((one === null) !== all) return yield* failed("name one message, or all of them with --all")
    const service = yield* operatorService(flags)
    const path = one === null ? "/set-aside/retry" : `/set-aside/${encodeURIComponent(one)}/retry`
    const { messages } = yield* service.post<{ readonly messages: number }>(path, {})
    if (json) return yield* printJsonLine({ messages })
    yield* print(`${grouped(messages)} ${messages === 1 ? "message is" : "messages are"} tried again`)
  })
).pipe(
  Command.withDescription(
    "Try messages again now that were set aside, after what was stored of them was repaired or a release that can read it was started. One that still can't be processed is set aside again. Needs the operator's key."
  ),
  Command.withShortDescription("Try messages again that were set aside")
)

export const setAside = Command.make("set-aside").pipe(
  Command.withDescription(
    "Messages that can't be processed: they hold up nobody else and are tried again by themselves."
  ),
  Command.withShortDescription("Messages that can't be processed"),
  Command.withSubcommands([list, retry])
)
