/** `posthaste tail`. After a broken connection it goes on behind the last printed fact. */
import { Effect, Option, Record, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { optionalText, orgService, serviceFlags } from "./service.ts"
import { colourOf, inLine, note, type Paints, paints, print } from "./terminal.ts"
import { type Event, tellOf } from "./why.ts"

const filterFlags = {
  stream: optionalText("stream", "Only this stream, such as message-<id>"),
  type: optionalText("type", "Only facts of this type, such as AttemptFailed"),
  status: optionalText("status", "Only facts after which the message has this status"),
  channel: optionalText("channel", "Only messages of this channel"),
  to: optionalText("to", "Only messages to this destination"),
  dossierId: optionalText("dossier", "Only messages of this business case"),
  correlationId: optionalText("correlation-id", "Only messages with this correlation id")
}

interface Fact {
  readonly stream: string
  readonly version: number
  readonly type: string
  readonly at: string
  readonly actor: string | null
  readonly data: Event["data"]
  readonly message: { readonly status: string } | null
}

const lineOf = (paint: Paints, { stream, version, type, at, data, message }: Fact): string => {
  const status = message?.status ?? ""
  const told =
    message === null ? `${type} ${JSON.stringify(data)}` : tellOf({ version, type, at, status, data }, Date.parse(at))
  return `${paint.dim(at)}  ${colourOf(paint, status)(status.padEnd(11))}  ${stream}  ${told}`
}

interface ServerSentEvent {
  /** The place to reconnect at; null leaves it unchanged. */
  readonly id: string | null
  readonly data: string | null
}

/**
 * The complete events of a text, and the rest, to be joined with the next piece. Effect's own parser drops events
 * without data; the feed sends an id alone, and who lost it would reconnect further back.
 */
export const takeEvents = (text: string): readonly [events: ReadonlyArray<ServerSentEvent>, rest: string] => {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n")
  const rest = blocks.pop()!
  return [blocks.map(eventOf), rest]
}

const eventOf = (block: string): ServerSentEvent => {
  let id: string | null = null
  const data: Array<string> = []
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":")
    const value = line.slice(colon + 1).replace(/^ /, "")
    if (line.startsWith("id:")) id = value
    else if (line.startsWith("data:")) data.push(value)
  }
  return { id, data: data.length === 0 ? null : data.join("\n") }
}

const AGAIN_AFTER = "1 second"

export const tail = Command.make(
  "tail",
  {
    ...filterFlags,
    after: optionalText("after", "Begin behind this event (the id in --json) instead of now"),
    count: Flag.Int("count").pipe(
      Flag.withAlias("n"),
      Flag.withDescription("End after this number of facts"),
      Flag.optional
    ),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ after, count, json, url, org, ...filter }) {
    const service = yield* orgService({ url, org })
    const paint = yield* paints
    const search = new URLSearchParams(Record.getSomes(filter)).toString()
    const path = search === "" ? "/feed" : `/feed?${search}`
    let lastId = Option.getOrNull(after)
    let left = Option.getOrElse(count, () => Number.POSITIVE_INFINITY)
    let isBroken = false

    const show = Effect.fnUntraced(function* (data: string, id: string | null) {
      left -= 1
      if (json) yield* print(`{"id":${JSON.stringify(id)},${data.slice(1)}`)
      else yield* print(inLine(lineOf(paint, JSON.parse(data) as Fact)))
    })

    const once = Effect.gen(function* () {
      let rest = ""
      yield* service.follow(path, lastId === null ? {} : { "last-event-id": lastId }).pipe(
        Stream.takeWhile(() => left > 0),
        Stream.runForEach(
          Effect.fnUntraced(function* (piece) {
            if (isBroken) yield* note(paint.dim("following again"))
            isBroken = false
            const [events, more] = takeEvents(rest + piece)
            rest = more
            for (const { id, data } of events) {
              if (data !== null && left > 0) yield* show(data, id)
              lastId = id ?? lastId
            }
            if (left <= 0) return yield* Effect.fail("enough" as const)
          })
        )
      )
    })

    while (left > 0) {
      yield* once.pipe(
        Effect.catchTag("Interrupted", (error) =>
          isBroken ? Effect.void : note(paint.dim(`${error.message}; trying again`))
        ),
        Effect.catchIf(
          (error) => error === "enough",
          () => Effect.void
        )
      )
      if (left <= 0) return
      isBroken = true
      yield* Effect.sleep(AGAIN_AFTER)
    }
  })
).pipe(
  Command.withDescription(
    "Follow the facts of the org as they are stored, until the command is stopped. It goes on by itself after a broken connection. With --json one a line."
  ),
  Command.withShortDescription("Follow the facts, live"),
  Command.withExamples([
    { command: "posthaste tail --type AttemptFailed", description: "Every failed attempt" },
    { command: "posthaste tail --status DEAD_LETTER --json", description: "Dead letters, one document a line" }
  ])
)
