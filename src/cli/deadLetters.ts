/** `posthaste dead-letters`: list messages that ended badly, and send them again. */
import { Effect, Option } from "effect"
import { Command, Flag, Prompt, TerminalCapabilities } from "effect/cli"
import { optionalText, orgService, type Service, serviceFlags } from "./service.ts"
import { bar, Failed, grouped, note, paints, print, printJson, printJsonLine, table } from "./terminal.ts"

interface DeadLetter {
  readonly id: string
  readonly to: string
  readonly channel: string
  readonly eventType: string | null
  readonly deadLetteredAt: string
  readonly lastError: { readonly code: string } | null
  readonly contradicted: boolean
}

interface Replay {
  readonly id: string
  readonly status: string
  readonly matched: number
  readonly replayed: number
  readonly skipped: number
}

const filterFlags = {
  to: optionalText("to", "Only those to this destination"),
  channel: optionalText("channel", "Only those of this channel"),
  errorCode: optionalText("error-code", "Only those whose last error had this code, such as http_410"),
  after: optionalText("after", "Only those that became dead letters after this time"),
  before: optionalText("before", "Only those that became dead letters before this time")
}

type Filter = Readonly<Record<keyof typeof filterFlags, Option.Option<string>>>

const filterOf = (given: Filter): Record<string, string> =>
  Object.fromEntries(
    (Object.keys(filterFlags) as ReadonlyArray<keyof Filter>).flatMap((name) =>
      Option.match(given[name], { onNone: () => [], onSome: (value) => [[name, value]] })
    )
  )

const list = Command.make(
  "list",
  {
    ...filterFlags,
    limit: Flag.Int("limit").pipe(Flag.withDescription("The largest number to list"), Flag.withDefault(50)),
    ...serviceFlags
  },
  ({ limit, json, url, org, ...filter }) =>
    Effect.gen(function* () {
      const service = yield* orgService({ url, org })
      let left = limit
      let cursor: string | undefined
      let shown = 0
      const rows: Array<ReadonlyArray<string>> = []
      while (left > 0) {
        const page = yield* service.get<{ items: ReadonlyArray<DeadLetter>; nextCursor: string | null }>(
          "/dead-letters",
          {
            ...filterOf(filter),
            limit: String(Math.min(left, 200)),
            cursor
          }
        )
        for (const each of page.items) {
          if (json) yield* printJsonLine(each)
          rows.push([
            each.deadLetteredAt,
            each.id,
            each.channel,
            each.to,
            each.lastError?.code ?? "",
            each.contradicted ? "may have been delivered" : ""
          ])
        }
        shown += page.items.length
        left -= page.items.length
        if (page.nextCursor === null) break
        cursor = page.nextCursor
      }
      if (json) return
      if (shown === 0) return yield* note("there are no dead letters that match")
      yield* print(table(rows))
    })
).pipe(
  Command.withDescription(
    "Messages that ended badly and were not replayed, the newest dead letter first. With --json one a line."
  ),
  Command.withShortDescription("List dead letters")
)

const FOLLOW_EVERY = "300 millis"

const follow = Effect.fnUntraced(function* (service: Service, first: Replay) {
  const progress = yield* bar("replaying")
  let replay = first
  while (replay.status === "RUNNING") {
    yield* progress.show(replay.replayed + replay.skipped, replay.matched)
    yield* Effect.sleep(FOLLOW_EVERY)
    replay = yield* service.get<Replay>(`/replays/${replay.id}`)
  }
  yield* progress.end
  return replay
})

const replay = Command.make(
  "replay",
  {
    ...filterFlags,
    id: Flag.String("id").pipe(Flag.withDescription("This message; may be given again"), Flag.atLeast(0)),
    all: Flag.Boolean("all").pipe(Flag.withDescription("Every dead letter of the org"), Flag.withDefault(false)),
    reason: optionalText("reason", "The reason to store with the replay"),
    key: optionalText("key", "Idempotency key: every call with the same key means the same replay"),
    preview: Flag.Boolean("preview").pipe(Flag.withDescription("Only count"), Flag.withDefault(false)),
    yes: Flag.Boolean("yes").pipe(Flag.withAlias("y"), Flag.withDescription("Do not ask"), Flag.withDefault(false)),
    detach: Flag.Boolean("detach").pipe(
      Flag.withDescription("Do not wait for its end; the replay goes on in the service"),
      Flag.withDefault(false)
    ),
    ...serviceFlags
  },
  ({ id, all, reason, key, preview, yes, detach, json, url, org, ...given }) =>
    Effect.gen(function* () {
      const filter = filterOf(given)
      const isFiltered = Object.keys(filter).length > 0
      if ([all, isFiltered, id.length > 0].filter(Boolean).length !== 1) {
        return yield* new Failed({
          message: "choose the dead letters: --id, or filters such as --to and --error-code, or --all"
        })
      }
      const wanted = id.length > 0 ? { ids: id } : { filter }
      const service = yield* orgService({ url, org })
      const count = yield* service.post<{ matched: number; contradicted: number }>("/dead-letters/replay", {
        ...wanted,
        preview: true
      })
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
      if (!yes) {
        yield* note(say)
        const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
        if (!canPrompt) return yield* new Failed({ message: "nothing was replayed: confirm with --yes" })
        if (!(yield* Prompt.run(Prompt.Confirm({ message: "Send them again?" }))))
          return yield* note("nothing was replayed")
      }
      const begun = yield* service.post<Replay>("/dead-letters/replay", {
        ...wanted,
        ...Option.match(reason, { onNone: () => ({}), onSome: (reason) => ({ reason }) }),
        ...Option.match(key, { onNone: () => ({}), onSome: (idempotencyKey) => ({ idempotencyKey }) })
      })
      if (detach) {
        return yield* json ? printJson(begun) : print(`replay ${begun.id} of ${grouped(begun.matched)} is under way`)
      }
      const ended = yield* follow(service, begun)
      if (json) return yield* printJson(ended)
      const skipped =
        ended.skipped === 0 ? "" : `, ${grouped(ended.skipped)} were no dead letters any more or had no body to send`
      yield* print(`replay ${ended.id} ${ended.status.toLowerCase()}: ${grouped(ended.replayed)} replayed${skipped}`)
      if (ended.status !== "COMPLETED")
        return yield* new Failed({ message: `the replay was ${ended.status.toLowerCase()}` })
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

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("Look at messages that ended badly, and send them again."),
  Command.withShortDescription("Look at dead letters, replay them"),
  Command.withSubcommands([list, replay])
)
