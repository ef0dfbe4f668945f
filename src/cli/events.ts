/** `posthaste events`. */
import { Effect, Record, Stream, Struct } from "effect"
import { Argument, Command } from "effect/cli"
import type { Message, PublishedEvent } from "../../sdk/src/api.ts"
import { rawMember } from "../adapters/api/rawJson.ts"
import { requestText, writtenRequest } from "./requestText.ts"
import { plainVerbs } from "./resources.ts"
import { optionalText, orgService, serviceFlags, timeFlag } from "./service.ts"
import { colourOf, failed, fromNow, grouped, note, paints, print, table } from "./terminal.ts"

const endpoints = (matched: number) => `${grouped(matched)} ${matched === 1 ? "endpoint" : "endpoints"}`

const show = Command.make(
  "show",
  { id: Argument.String("id").pipe(Argument.withDescription("The event's id")), ...serviceFlags },
  Effect.fnUntraced(function* ({ id, json, ...flags }) {
    const service = yield* orgService(flags)
    const path = `/events/${encodeURIComponent(id)}`
    // As text, to keep the digits of the data.
    const { text } = yield* service.call("GET", path)
    if (json) return yield* print(text)
    const event = JSON.parse(text) as PublishedEvent
    const messages = yield* Stream.runCollect(service.items<Message>(`${path}/messages`, { limit: "200" }))
    const paint = yield* paints
    const rows = messages.map(({ status, id, to, attempts, lastError }) => [
      colourOf(paint, status)(status.padEnd("DEAD_LETTER".length)),
      id,
      `to ${to}`,
      `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`,
      lastError?.code ?? ""
    ])
    const said = event.bodyErased ? "its data is erased" : (rawMember(text, "data") ?? "")
    yield* print(
      [
        `${paint.bold(event.eventType)}  ${event.id}`,
        `published ${fromNow(event.createdAt, Date.now())}, for ${endpoints(event.matched)}`,
        said,
        ...(rows.length === 0 ? [] : ["", table(rows)])
      ].join("\n")
    )
  })
).pipe(Command.withDescription("One event: its data, and its messages as they are now."))

const fields = {
  eventType: optionalText("event-type", "The type of the event, such as order.paid"),
  dossierId: optionalText("dossier", "The business case it belongs to"),
  orderingKey: optionalText("ordering-key", "Each endpoint gets events with the same key one after the other"),
  correlationId: optionalText("correlation-id", "Sent along to the receivers"),
  deliverAt: timeFlag("deliver-at", "Not before this time", "ahead"),
  expiresAt: timeFlag("expires-at", "Not after this time", "ahead")
}

const publish = Command.make(
  "publish",
  {
    ...fields,
    data: optionalText("data", "The JSON to tell, exactly as it is written here"),
    file: optionalText(
      "file",
      "Read the whole request from this file (- is standard input); flags go before its fields"
    ),
    key: optionalText("key", "Idempotency key: every call with the same key means the same event"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ data: text, file, key, json, url, org, ...given }) {
    const written = yield* writtenRequest({ file, member: "data", flag: "data", text })
    if (written.raw === null) return yield* failed("there is no data: give --data, or a --file with data")
    const named = Record.getSomes(Struct.pick(given, Object.keys(fields) as ReadonlyArray<keyof typeof fields>))
    const request: Readonly<Record<string, unknown>> = { ...written.fields, ...named }
    if (request["eventType"] === undefined) return yield* failed("there is no type: give --event-type")
    const service = yield* orgService({ url, org })
    const headers = Record.getSomes({ "idempotency-key": key })
    const answer = yield* service.call("POST", "/events", requestText(request, { data: written.raw }), headers)
    if (json) return yield* print(answer.text)
    const event = JSON.parse(answer.text) as PublishedEvent
    const paint = yield* paints
    yield* print(event.id)
    const isNew = answer.status === 201
    yield* note(
      paint.dim(
        isNew
          ? `published and stored, for ${endpoints(event.matched)}. to follow it: posthaste events show ${event.id}`
          : "known already: this is the event of this idempotency key"
      )
    )
  })
).pipe(
  Command.withDescription(
    "Publish an event: every endpoint that wants its type gets it. Prints its id once it is stored with all its messages."
  ),
  Command.withShortDescription("Publish an event"),
  Command.withExamples([
    {
      command: `posthaste events publish --event-type order.paid --data '{"order":4711,"total":99.90}' --key order-4711-paid`,
      description: "Repeats with this key publish nothing twice"
    }
  ])
)

export const events = Command.make("events").pipe(
  Command.withDescription("Publish events to all webhook endpoints that want their type, and look at them."),
  Command.withShortDescription("Publish events, look at them"),
  Command.withSubcommands([publish, show, ...plainVerbs("events", ["create"])])
)
