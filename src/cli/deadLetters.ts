/** `posthaste dead-letters`. */
import { Effect, Record, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { DeadLetter, Replay, ReplayPreview } from "../../sdk/src/api.ts"
import { confirmed, confirmFlags } from "./confirm.ts"
import { detach as detachFlag, finish } from "./replays.ts"
import { optionalText, orgService, serviceFlags, switchFlag, timeFlag } from "./service.ts"
import { failed, grouped, note, paints, print, printJson, printJsonLine, table } from "./terminal.ts"

const filterFlags = {
  to: optionalText("to", "Only those to this destination"),
  channel: optionalText("channel", "Only those of this channel"),
  errorCode: optionalText("error-code", "Only those whose last error had this code, such as http_410"),
  after: timeFlag("after", "Only those that became dead letters after this time"),
  before: timeFlag("before", "Only those that became dead letters before this time")
}

const choiceFlags = {
  ...filterFlags,
  id: Flag.String("id").pipe(Flag.withDescription("This message; may be given again"), Flag.atLeast(0)),
  all: switchFlag("all", "Every dead letter of the org")
}

const chosen = (ids: ReadonlyArray<string>, all: boolean, filter: Readonly<Record<string, string>>) =>
  [all, Object.keys(filter).length > 0, ids.length > 0].filter(Boolean).length === 1
    ? Effect.succeed(ids.length > 0 ? { ids } : { filter })
    : failed("choose the dead letters: --id, or filters such as --to and --error-code, or --all")

const rowOf = (each: DeadLetter): ReadonlyArray<string> => [
  each.deadLetteredAt,
  each.id,
  each.channel,
  each.to,
  each.lastError?.code ?? "",
  each.contradicted ? "may have been delivered" : ""
]

const list = Command.make(
  "list",
  {
    ...filterFlags,
    dismissed: switchFlag("dismissed", "Those that were dismissed, in place of those that were not"),
    limit: Flag.Int("limit").pipe(Flag.withDescription("The largest number to list"), Flag.withDefault(50)),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ limit, dismissed, json, url, org, ...filter }) {
    const service = yield* orgService({ url, org })
    const which = { ...Record.getSomes(filter), ...(dismissed && { dismissed: "true" }) }
    const query = { ...which, limit: String(Math.min(limit, 200)) }
    const found = service.items<DeadLetter>("/dead-letters", query).pipe(Stream.take(limit))
    if (json) return yield* Stream.runForEach(found, printJsonLine)
    const rows = yield* Stream.runCollect(Stream.map(found, rowOf))
    yield* rows.length === 0 ? note("there are no dead letters that match") : print(table(rows))
  })
).pipe(
  Command.withDescription(
    "Messages that ended badly and were neither replayed nor dismissed, the newest dead letter first. With --json one a line."
  ),
  Command.withShortDescription("List dead letters")
)

const replay = Command.make(
  "replay",
  {
    ...choiceFlags,
    reason: optionalText("reason", "The reason to store with the replay"),
    sendTo: optionalText("send-to", "Send them to this other destination of their channel, as new messages"),
    key: optionalText("key", "Idempotency key: every call with the same key means the same replay"),
    preview: switchFlag("preview", "Only count"),
    yes: switchFlag("yes", "Do not ask").pipe(Flag.withAlias("y")),
    detach: detachFlag,
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, all, reason, sendTo, key, preview, yes, detach, json, url, org, ...given }) {
    const wanted = yield* chosen(id, all, Record.getSomes(given))
    const service = yield* orgService({ url, org })
    const count = yield* service.post<ReplayPreview>("/dead-letters/replay", { ...wanted, preview: true })
    if (preview && json) return yield* printJson(count)
    const paint = yield* paints
    const doubt =
      count.contradicted === 0 ? "" : paint.yellow(`, ${count.contradicted} of which may have been delivered already`)
    const say = `${grouped(count.matched)} dead ${count.matched === 1 ? "letter matches" : "letters match"}${doubt}`
    if (preview) return yield* print(say)
    if (count.matched === 0) {
      if (json) return yield* printJson({ ...count, replayed: 0 })
      return yield* note("no dead letter matches: nothing to replay")
    }
    if (!(yield* confirmed(say, { yes, preview: false }))) return
    const begun = yield* service.post<Replay>("/dead-letters/replay", {
      ...wanted,
      ...Record.getSomes({ reason, to: sendTo, idempotencyKey: key })
    })
    return yield* finish(service, begun, { detach, json, left: "were no dead letters any more or had no body to send" })
  })
).pipe(
  Command.withDescription(
    "Send dead letters again: counts them, asks, and follows the replay to its end. The replay runs in the service and goes on when this command is stopped."
  ),
  Command.withShortDescription("Replay dead letters"),
  Command.withExamples([
    { command: "posthaste dead-letters replay --error-code http_410 --preview", description: "Only count them" },
    {
      command: 'posthaste dead-letters replay --to 66f69029-… --reason "back again" --yes',
      description: "Without the question"
    }
  ])
)

const dismiss = Command.make(
  "dismiss",
  {
    ...choiceFlags,
    reason: optionalText("reason", "The reason to store"),
    detach: detachFlag,
    ...confirmFlags,
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, all, reason, detach, yes, preview, json, url, org, ...given }) {
    const wanted = yield* chosen(id, all, Record.getSomes(given))
    const service = yield* orgService({ url, org })
    const { matched } = yield* service.post<ReplayPreview>("/dead-letters/dismiss", { ...wanted, preview: true })
    if (!(yield* confirmed(`${grouped(matched)} dead letters, to be dismissed`, { yes, preview }))) return
    const begun = yield* service.post<Replay>("/dead-letters/dismiss", { ...wanted, ...Record.getSomes({ reason }) })
    return yield* finish(service, begun, { detach, json, left: "were no dead letters any more", done: "dismissed" })
  })
).pipe(
  Command.withDescription(
    "Take dead letters from the list of those that want somebody. They stay, and can still be replayed."
  ),
  Command.withShortDescription("Dismiss dead letters")
)

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("Look at messages that ended badly, send them again, or dismiss them."),
  Command.withShortDescription("Look at dead letters, replay them"),
  Command.withSubcommands([list, replay, dismiss])
)
