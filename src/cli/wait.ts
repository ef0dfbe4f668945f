/** Follows a message to its ending: each fact, the reason while it waits, and at the end the explanation. */
import { Effect, Stream } from "effect"
import type { Service } from "./service.ts"
import { headOf, rowOf } from "./show.ts"
import { failed, note, paints, print, printJson } from "./terminal.ts"
import { causeOf, type Event, type Explanation, type Message } from "./why.ts"

const LOOK_EVERY = "200 millis"
const REASONS_AFTER_LOOKS = 10

/** SENT ends the wait: proof may come much later. */
const isUnderWay = ({ status }: Message) => status === "QUEUED" || status === "SENDING"

const WIDTH = "DEAD_LETTER".length

export const waitFor = Effect.fnUntraced(function* (service: Service, id: string, json: boolean) {
  const path = `/outbound/messages/${encodeURIComponent(id)}`
  const paint = yield* paints
  let seen = 0
  let told = ""
  for (let looks = 1; ; looks++) {
    // Read first: the history then holds the ending.
    const message = yield* service.get<Message>(path)
    const events = yield* Stream.runCollect(service.items<Event>(`${path}/events`, { limit: "200" }))
    const now = Date.now()
    if (!json) for (const event of events.slice(seen)) yield* print(rowOf(paint, event, WIDTH, now))
    if (!isUnderWay(message)) {
      const explanation = yield* service.get<Explanation>(`${path}/explanation`)
      yield* json
        ? printJson({ message, why: explanation.says, explanation, events })
        : print(`\n${headOf(paint, message, explanation, null)}`)
      return yield* message.status === "DELIVERED" || message.status === "SENT"
        ? Effect.void
        : failed(`the message was not delivered: it is ${message.status}`)
    }
    if (events.length === seen && looks % REASONS_AFTER_LOOKS === 0) {
      const explanation = yield* service.get<Explanation>(`${path}/explanation`)
      if (explanation.says !== told) yield* note(paint.dim(`waits: ${causeOf(explanation, now)}`))
      told = explanation.says
    }
    seen = events.length
    yield* Effect.sleep(LOOK_EVERY)
  }
})
