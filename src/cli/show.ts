/** `posthaste show`. */
import { Effect, Option, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import type { Attempt } from "../../sdk/src/api.ts"
import { detailsOf } from "../domain/message/facts.ts"
import { orgService, serviceFlags, switchFlag, timeFlag, troubleLine } from "./service.ts"
import { colourOf, failed, fromNow, inLine, type Paints, paints, print, printExactly, printJson } from "./terminal.ts"
import { causeOf, commandOf, type Event, type Explanation, type Message, tellOf } from "./why.ts"

const detailLine = ({ eventType: _, ...message }: Message): ReadonlyArray<string> => {
  const said = Object.entries(detailsOf(message)).flatMap(([name, detail]) => {
    if (detail === null) return []
    return `${wordsOf(name)} ${typeof detail === "string" ? detail : JSON.stringify(detail)}`
  })
  return said.length === 0 ? [] : [said.join(" · ")]
}

/** `orderingKey` becomes `ordering key`. */
const wordsOf = (name: string) => name.replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)

export const headOf = (paint: Paints, message: Message, explanation: Explanation, at: string | null): string => {
  const now = at === null ? Date.now() : Date.parse(at)
  return [
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
    `why: ${causeOf(explanation, now)}`,
    ...explanation.also.map((cause) => `and: ${causeOf(cause, now)}`),
    `next: ${explanation.next}`,
    ...explanation.actions.map((action) => `can: ${action.says}: ${commandOf(action)}`),
    ...explanation.troubles
      .filter(({ reason }) => reason !== "NO_WORKER")
      .map((trouble) => `beside: ${troubleLine(trouble, now)}`),
    ...(explanation.restored === null ? [] : [explanation.restored.says]),
    ...(at === null || explanation.unknown.length === 0
      ? []
      : [`not known of that time: ${explanation.unknown.join(", ")}`])
  ]
    .map(inLine)
    .join("\n")
}

export const rowOf = (paint: Paints, event: Event, width: number, now: number): string => {
  const status = colourOf(paint, event.status)(event.status.padEnd(width))
  return inLine(`${paint.dim(String(event.version).padStart(3))}  ${event.at}  ${status}  ${tellOf(event, now)}`)
}

const attemptLines = (paint: Paints, attempts: ReadonlyArray<Attempt>, withHeaders: boolean): ReadonlyArray<string> =>
  attempts.flatMap((attempt) => [attemptLine(attempt), ...(withHeaders ? headerLines(paint, attempt) : [])])

const attemptLine = ({ number, epoch, request, response, timing, outcome, startedAt }: Attempt): string => {
  const name = `attempt ${number}${epoch > 1 ? ` of epoch ${epoch}` : ""}`
  if (request === null) return `${name}  ${startedAt}  ${outcome ?? "under way"}; nothing is known of a request`
  const where = request.url === null ? "" : `${request.method} ${request.url}  `
  const to = request.address === null ? "no connection" : `to ${request.address}`
  return `${name}  ${request.sentAt}  ${where}${to}  ${response.status ?? "no answer"}${timing === null ? "" : took(timing)}`
}

const took = ({ totalMs, ...steps }: NonNullable<Attempt["timing"]>): string => {
  const names = { dnsMs: "DNS", connectMs: "connect", tlsMs: "TLS", firstByteMs: "first byte" }
  const reached = Object.entries(names).flatMap(([field, name]) => {
    const ms = steps[field as keyof typeof names]
    return ms === null ? [] : [`${name} ${ms}`]
  })
  return ` after ${totalMs} ms${reached.length === 0 ? "" : ` (${reached.join(", ")})`}`
}

const headerLines = (paint: Paints, { request, response }: Attempt): ReadonlyArray<string> => [
  ...Object.entries(request?.headers ?? {}).map(([name, value]) => paint.dim(`  > ${name}: ${value}`)),
  ...Object.entries(response.headers ?? {}).map(([name, value]) => paint.dim(`  < ${name}: ${value}`))
]

const textOf = (
  paint: Paints,
  message: Message,
  events: ReadonlyArray<Event>,
  explanation: Explanation,
  attempts: ReadonlyArray<string>,
  at: string | null
): string => {
  const now = at === null ? Date.now() : Date.parse(at)
  const width = Math.max(...events.map(({ status }) => status.length))
  const rows = events.map((event) => rowOf(paint, event, width, now))
  const tries = attempts.length === 0 ? [] : ["", ...attempts.map(inLine)]
  return [headOf(paint, message, explanation, at), "", ...rows, ...tries].join("\n")
}

export const show = Command.make(
  "show",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The message's id")),
    at: timeFlag("at", "As it was known at this time"),
    headers: switchFlag("headers", "The headers of each attempt's request and answer too, secrets left out"),
    body: switchFlag("body", "Only its body, byte for byte as it is delivered"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, at, headers, body, json, ...flags }) {
    const service = yield* orgService(flags)
    if (body) {
      const { text } = yield* service.call("GET", `/outbound/messages/${encodeURIComponent(id)}/body`)
      return yield* printExactly(text)
    }
    const moment = Option.getOrNull(at)
    if (moment !== null && Number.isNaN(Date.parse(moment))) {
      return yield* failed(`--at is no time: ${moment}`)
    }
    const path = `/outbound/messages/${encodeURIComponent(id)}`
    const then = moment === null ? {} : { at: new Date(moment).toISOString() }
    const [message, explanation, all, attempts] = yield* Effect.all(
      [
        service.get<Message>(path, then),
        service.get<Explanation>(`${path}/explanation`, then),
        Stream.runCollect(service.items<Event>(`${path}/events`, { limit: "200" })),
        Stream.runCollect(service.items<Attempt>(`${path}/attempts`, { limit: "200" }))
      ],
      { concurrency: 4 }
    )
    const events = all.filter((event) => moment === null || Date.parse(event.at) <= Date.parse(moment))
    if (json) {
      return yield* printJson({
        message,
        why: explanation.says,
        explanation,
        events,
        ...(moment === null ? { attempts } : {})
      })
    }
    const paint = yield* paints
    const proof = attemptLines(
      paint,
      attempts.filter(({ startedAt }) => moment === null || Date.parse(startedAt) <= Date.parse(moment)),
      headers
    )
    yield* print(textOf(paint, message, events, explanation, proof, moment))
  })
).pipe(
  Command.withDescription(
    "Where a message is, why, and what comes next: its attempts with what they called and what answered, and whatever holds it up (a pause, an open circuit, a rate limit, another message of its ordering key)."
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
