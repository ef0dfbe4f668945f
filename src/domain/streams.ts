/** The names of streams: a message's is `message-<id>`, a journal's `<kind>-<id>`. */
import { type EventId, isUuid, type MessageId } from "./ids.ts"

export const MESSAGES = "message-"
const EVENTS = "event-"

export const streamOf = (id: MessageId): string => `${MESSAGES}${id}`

export const messageOf = (stream: string): MessageId | null => {
  const id = stream.slice(MESSAGES.length)
  return stream.startsWith(MESSAGES) && isUuid(id) ? (id as MessageId) : null
}

export const eventOf = (stream: string): EventId | null => {
  const id = stream.slice(EVENTS.length)
  return stream.startsWith(EVENTS) && isUuid(id) ? (id as EventId) : null
}

export const halvesOf = (stream: string): readonly [kind: string, id: string] => {
  const dash = stream.indexOf("-")
  return dash === -1 ? [stream, ""] : [stream.slice(0, dash), stream.slice(dash + 1)]
}
