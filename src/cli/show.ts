/** `posthaste show`: the state of one message, the reason, the next step, and its history. */
import { Effect, Option, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { detailsOf } from "../domain/message/facts.ts"
import { type List, optionalText, orgService, type Service, serviceFlags } from "./service.ts"
import { colourOf, type Failed, failed, fromNow, type Paints, paints, print, printJson } from "./terminal.ts"
import { type Event, type Message, type Surroundings, tellOf, whyOf } from "./why.ts"

/** How many messages are looked through for the one that goes first. */
const LOOKED_THROUGH_MAX = 2_000

/** The message is shown also when its explanation can't be read. */
const ifKnown = <A>(effect: Effect.Effect<A | null, Failed>) => Effect.catch(effect, () => Effect.succeed(null))

interface Channels {
  readonly items: ReadonlyArray<{ readonly name: string; readonly path: string }>
}

type Destination = NonNullable<Surroundings["destination"]>

const nothingKnown: Surroundings = { destination: null, circuit: null, before: null }

const surroundingsOf = Effect.fnUntraced(function* (service: Service, message: Message, events: ReadonlyArray<Event>) {
  const id = events[0]?.data.destination
  if (message.status !== "QUEUED" || id === undefined) {
    return nothingKnown
  }
  const destination = service.get<Channels>("/channels").pipe(
    Effect.flatMap(({ items }) => {
      const path = items.find(({ name }) => name === message.channel)?.path
      return path === undefined
        ? failed(`the service has no channel ${message.channel}`)
        : service.get<Destination>(`${path}/${id}`)
    }),
    Effect.map(({ paused, rateLimit }): Destination => ({ paused, rateLimit }))
  )
  const circuit = service.get<{ status: string; openUntil: string | null }>(`/circuits/${id}`)
  const isBefore = (other: Message) =>
    other.orderingKey === message.orderingKey && other.id !== message.id && other.createdAt <= message.createdAt
  const search = { to: message.to, createdBefore: later(message.createdAt), limit: "200" }
  const ahead = ["SENDING", "QUEUED"].map((status) =>
    service
      .items<Message>("/outbound/messages", { ...search, status })
      .pipe(Stream.take(LOOKED_THROUGH_MAX), Stream.filter(isBefore), Stream.runHead)
  )
  const before =
    message.orderingKey === null
      ? Effect.succeed(null)
      : Effect.map(Effect.all(ahead), (found) => Option.getOrNull(Option.firstSomeOf(found)))
  return yield* Effect.all(
    { destination: ifKnown(destination), circuit: ifKnown(circuit), before: ifKnown(before) },
    { concurrency: 3 }
  )
})

/** `createdBefore` leaves out its own moment. */
const later = (iso: string) => new Date(Date.parse(iso) + 1).toISOString()

/** The details that its sender gave. */
const detailLine = ({ eventType: _, ...message }: Message): ReadonlyArray<string> => {
  const said = Object.entries(detailsOf(message)).flatMap(([name, detail]) => {
    if (detail === null) return []
    return `${wordsOf(name)} ${typeof detail === "string" ? detail : JSON.stringify(detail)}`
  })
  return said.length === 0 ? [] : [said.join(" · ")]
}

/** `orderingKey` becomes `ordering key`. */
const wordsOf = (name: string) => name.replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)

const textOf = (
  paint: Paints,
  message: Message,
  events: ReadonlyArray<Event>,
  around: Surroundings,
  at: string | null
): string => {
  const now = at === null ? Date.now() : Date.parse(at)
  const head = [
    `${colourOf(paint, message.status)(paint.bold(message.status))}  ${message.id}${at === null ? "" : paint.dim(`  as it was at ${at}`)}`,
    `${message.channel} to ${message.to}${message.eventType === null ? "" : `, ${message.eventType}`}`,
    [
      `attempt ${message.attempts} of ${message.attemptsMax}`,
      message.epoch > 1 ? `epoch ${message.epoch}` : null,
      `accepted ${fromNow(message.createdAt, now)}`,
      message.nextAttemptAt === null ? null : `next ${fromNow(message.nextAttemptAt, now)} (${message.nextAttemptAt})`
    ]
      .filter((part) => part !== null)
      .join(" · "),
    ...detailLine(message),
    `why: ${whyOf(message, events, around, now)}`
  ]
  const width = Math.max(...events.map(({ status }) => status.length))
  const rows = events.map((event) => {
    const status = colourOf(paint, event.status)(event.status.padEnd(width))
    return `${paint.dim(String(event.version).padStart(3))}  ${event.at}  ${status}  ${tellOf(event, now)}`
  })
  return [...head, "", ...rows].join("\n")
}

export const show = Command.make(
  "show",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The message's id")),
    at: optionalText("at", "As it was known at this time, such as 2026-11-18T10:03:36Z"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, at, json, ...flags }) {
    const service = yield* orgService(flags)
    const moment = Option.getOrNull(at)
    if (moment !== null && Number.isNaN(Date.parse(moment))) {
      return yield* failed(`--at is no time: ${moment}`)
    }
    const path = `/outbound/messages/${encodeURIComponent(id)}`
    const [message, all, attempts] = yield* Effect.all(
      [
        service.get<Message>(path, moment === null ? {} : { at: new Date(moment).toISOString() }),
        service.get<List<Event>>(`${path}/events`),
        service.get<List<unknown>>(`${path}/attempts`)
      ],
      { concurrency: 3 }
    )
    const events = all.items.filter((event) => moment === null || Date.parse(event.at) <= Date.parse(moment))
    // Its destination and its queue have no history: they are known only as they are now.
    const around = moment === null ? yield* surroundingsOf(service, message, events) : nothingKnown
    const now = moment === null ? Date.now() : Date.parse(moment)
    if (json) {
      const why = whyOf(message, events, around, now)
      return yield* printJson({
        message,
        why,
        ...around,
        events,
        ...(moment === null ? { attempts: attempts.items } : {})
      })
    }
    yield* print(textOf(yield* paints, message, events, around, moment))
  })
).pipe(
  Command.withDescription(
    "Where a message is, why, and what comes next: its attempts, and whatever holds it up (a pause, an open circuit, a rate limit, another message of its ordering key)."
  ),
  Command.withShortDescription("Show a message and all that happened to it"),
  Command.withExamples([
    { command: "posthaste show 01a1ee1c-a0b2-757b-8fb9-1a5febb0c57c", description: "Now" },
    {
      command: "posthaste show 01a1ee1c-a0b2-757b-8fb9-1a5febb0c57c --at 2026-11-18T10:03:36Z",
      description: "As it was"
    }
  ])
)
