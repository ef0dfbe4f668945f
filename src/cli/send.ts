/** `posthaste send`. */
import { Effect, type Option, Record, Struct } from "effect"
import { Argument, Command } from "effect/cli"
import { requestText, writtenRequest } from "./requestText.ts"
import { optionalText, orgService, serviceFlags, switchFlag, timeFlag } from "./service.ts"
import { failed, fromNow, note, paints, print } from "./terminal.ts"
import { waitFor } from "./wait.ts"

/** Flags of fields with another name. */
const fields = {
  to: optionalText("to", "The recipient in the channel's form: the id of a webhook endpoint, a phone number"),
  channel: optionalText("channel", "A channel of the service, such as whatsapp; webhook when left out"),
  eventType: optionalText("event-type", "The type of the event, such as order.paid"),
  templateCode: optionalText("template-code", "Kept with the message"),
  dossierId: optionalText("dossier", "The business case it belongs to"),
  orderingKey: optionalText("ordering-key", "Messages to one destination with the same key go one after the other"),
  correlationId: optionalText("correlation-id", "Sent along to the receiver"),
  deliverAt: timeFlag("deliver-at", "Not before this time", "ahead"),
  expiresAt: timeFlag("expires-at", "Not after this time", "ahead")
}

const flags = {
  ...fields,
  payload: optionalText("payload", "The JSON to deliver, exactly as it is written here"),
  file: optionalText("file", "Read the whole request from this file (- is standard input); flags go before its fields"),
  key: optionalText("key", "Idempotency key: every call with the same key means the same message"),
  wait: switchFlag(
    "wait",
    "Follow the message until it has ended, then say where it is; ends with 1 if it was not delivered"
  ),
  ...serviceFlags
}

const requestOf = Effect.fnUntraced(function* (
  given: Readonly<Record<keyof typeof fields | "payload" | "file", Option.Option<string>>>
) {
  const { file, payload: text } = given
  const written = yield* writtenRequest({ file, member: "payloadJson", flag: "payload", text })
  if (written.raw === null) return yield* failed("there is no payload: give --payload, or a --file with payloadJson")
  const named = Record.getSomes(Struct.pick(given, Object.keys(fields) as ReadonlyArray<keyof typeof fields>))
  const request: Readonly<Record<string, unknown>> = { channel: "webhook", ...written.fields, ...named }
  if (request["to"] === undefined) return yield* failed("there is no recipient: give --to, or a --file with to")
  return requestText(request, { payloadJson: written.raw })
})

export const resend = Command.make(
  "resend",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The message's id")),
    to: optionalText("to", "Another destination of the same channel"),
    key: optionalText("key", "Idempotency key: every call with the same key means the same new message"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, to, key, json, ...flags }) {
    const service = yield* orgService(flags)
    const path = `/outbound/messages/${encodeURIComponent(id)}/resend`
    const headers = Record.getSomes({ "idempotency-key": key })
    const { text } = yield* service.call("POST", path, JSON.stringify(Record.getSomes({ to })), headers)
    yield* print(json ? text : (JSON.parse(text) as { id: string }).id)
  })
).pipe(
  Command.withDescription(
    "Send a message once more, whatever became of it, as a new message that names it. Prints the id of the new one."
  ),
  Command.withShortDescription("Send a message once more, as a new one")
)

export const retryNow = Command.make(
  "retry-now",
  { id: Argument.String("id").pipe(Argument.withDescription("The message's id")), ...serviceFlags },
  Effect.fnUntraced(function* ({ id, json, ...flags }) {
    const service = yield* orgService(flags)
    const { text } = yield* service.call("POST", `/outbound/messages/${encodeURIComponent(id)}/retry-now`)
    yield* json ? print(text) : note(`${id} is due now. to follow it: posthaste show ${id}`)
  })
).pipe(
  Command.withDescription(
    "Make a message due now that waits for a retry or for its time. A pause, an open circuit and a rate limit stay."
  ),
  Command.withShortDescription("Send a waiting message before its time")
)

export const send = Command.make("send", flags, (given) =>
  Effect.gen(function* () {
    const body = yield* requestOf(given)
    const service = yield* orgService(given)
    const headers = Record.getSomes({ "idempotency-key": given.key })
    const { status, text } = yield* service.call("POST", "/outbound/messages", body, headers)
    if (given.wait) return yield* waitFor(service, (JSON.parse(text) as { id: string }).id, given.json)
    if (given.json) return yield* print(text)
    const message = JSON.parse(text) as { id: string; status: string; nextAttemptAt: string | null }
    const paint = yield* paints
    yield* print(message.id)
    const isNew = status === 201
    const when = message.nextAttemptAt === null ? "" : `, ${fromNow(message.nextAttemptAt, Date.now())}`
    yield* note(
      paint.dim(
        isNew
          ? `accepted and stored: ${message.status}${when}. to follow it: posthaste show ${message.id}`
          : `known already: the message of this idempotency key is ${message.status}`
      )
    )
  })
).pipe(
  Command.withDescription("Send a message. Prints its id once it is stored; from then on it survives any crash."),
  Command.withShortDescription("Send a message"),
  Command.withExamples([
    {
      command: `posthaste send --wait --to 66f69029-fb38-4fbf-aaaa-083a6d6f4369 --payload '{"order":4711}'`,
      description: "Send it, and see it arrive"
    },
    {
      command: `posthaste send --to 66f69029-fb38-4fbf-aaaa-083a6d6f4369 --payload '{"order":4711}' --key order-4711`,
      description: "To a webhook endpoint; repeats with this key send nothing twice"
    },
    { command: "posthaste send --file request.json", description: "A whole request, as the API takes it" }
  ])
)
