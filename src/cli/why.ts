/** The reason for a message's state in one sentence, from the API's answers about it and its destination. Data in, data out. */
import type { MessageDetails } from "../domain/message/facts.ts"
import { fromNow } from "./terminal.ts"

export interface Message extends MessageDetails {
  readonly id: string
  readonly channel: string
  readonly to: string
  readonly status: string
  readonly epoch: number
  readonly attempts: number
  readonly attemptsMax: number
  readonly nextAttemptAt: string | null
  readonly lastError: { readonly code: string; readonly message: string } | null
  readonly createdAt: string
}

export interface Event {
  readonly version: number
  readonly type: string
  readonly at: string
  readonly status: string
  readonly data: {
    readonly destination?: string
    readonly epoch?: number
    readonly attempt?: number
    readonly status?: number | null
    readonly durationMs?: number
    readonly error?: { readonly code: string; readonly message: string } | null
    readonly reason?: string | null
    readonly retryAt?: string | null
    readonly dueAt?: string
    readonly reconcileAt?: string
    readonly proof?: string
    readonly by?: string
    readonly edited?: boolean
    readonly receipt?: string
    readonly contradicts?: boolean
  }
}

/** The destination of the message and what holds it up; null where the API gave no answer. */
export interface Surroundings {
  readonly destination: {
    readonly paused: boolean
    readonly rateLimit: { readonly limit: number; readonly periodMs: number } | null
  } | null
  readonly circuit: { readonly status: string; readonly openUntil: string | null } | null
  /** The message before it with the same ordering key that has not ended. */
  readonly before: { readonly id: string; readonly status: string } | null
}

export const whyOf = (message: Message, events: ReadonlyArray<Event>, around: Surroundings, now: number): string => {
  const last = events.at(-1)
  switch (message.status) {
    case "QUEUED":
      return whyQueued(message, around, now)
    case "SENDING": {
      const doubt = events.findLast(({ type }) => type === "AttemptUnresolved" || type === "AttemptStarted")
      return doubt?.type === "AttemptUnresolved"
        ? `the destination may have taken attempt ${message.attempts}: Posthaste asks it ${fromNow(doubt.data.reconcileAt!, now)}`
        : `attempt ${message.attempts} began ${fromNow(doubt?.at ?? message.createdAt, now)} and is under way`
    }
    case "SENT":
      return "the destination took the message; a proof of delivery has not arrived yet"
    case "DELIVERED":
      return last?.type === "MessageDelivered" && last.data.proof === "receipt"
        ? "a receipt from the provider proves the delivery"
        : "the destination answered that it received the message"
    case "FAILED":
      return `the message was refused for good${errorIn(message)}; to send it again: posthaste dead-letters replay --id ${message.id}`
    case "DEAD_LETTER":
      return `no attempt is left${errorIn(message)}; to send the message again: posthaste dead-letters replay --id ${message.id}`
    case "CANCELLED":
      return "the message was cancelled before it was sent"
    case "EXPIRED":
      return "the message expired before it could be sent"
    default:
      return ""
  }
}

const errorIn = ({ lastError }: Message) => (lastError === null ? "" : ` (${lastError.code}: ${lastError.message})`)

const whyQueued = (message: Message, { destination, circuit, before }: Surroundings, now: number): string => {
  const due = message.nextAttemptAt
  const isDue = due === null || Date.parse(due) <= now
  if (before !== null) {
    return `message ${before.id} (${before.status}) has the same ordering key and goes first`
  }
  if (destination?.paused) return "the destination is paused: its messages wait until it is resumed"
  if (circuit?.status === "HELD") return "the circuit of the destination is held by hand: its messages wait for a reset"
  if (circuit !== null && circuit.status !== "CLOSED") {
    const until = circuit.openUntil === null ? "" : `; the next one goes ${fromNow(circuit.openUntil, now)}`
    return `the circuit of the destination is ${circuit.status}: only probes are sent${until}`
  }
  if (!isDue) {
    return message.attempts === 0
      ? `the message is not due yet: it goes ${fromNow(due, now)}`
      : `attempt ${message.attempts} failed${errorIn(message)}: the next one starts ${fromNow(due, now)}`
  }
  const { rateLimit } = destination ?? { rateLimit: null }
  return rateLimit === null
    ? "the message is due and goes as soon as a worker is free"
    : `the message is due and waits for the rate limit of its destination: ${rateLimit.limit} messages every ${rateLimit.periodMs} ms`
}

/** A fact in words for people. */
export const tellOf = ({ type, data }: Event, now: number): string => {
  const error = data.error ? `${data.error.code}: ${data.error.message}` : ""
  const reason = data.reason ? `: ${data.reason}` : ""
  const took = data.durationMs === undefined ? "" : ` after ${data.durationMs} ms`
  switch (type) {
    case "MessageQueued":
      return "accepted"
    case "AttemptStarted":
      return `attempt ${data.attempt} began`
    case "AttemptSucceeded":
      return `attempt ${data.attempt} succeeded${data.status ? ` with status ${data.status}` : ""}${took}`
    case "AttemptFailed":
      return `attempt ${data.attempt} failed${took} (${error})${data.retryAt ? `, next attempt ${fromNow(data.retryAt, now)}` : ", no attempt follows"}`
    case "AttemptDeferred":
      return `attempt ${data.attempt} was deferred and does not count (${error}), next attempt ${fromNow(data.dueAt!, now)}`
    case "AttemptAbandoned":
      return `attempt ${data.attempt} was abandoned${reason}${data.retryAt ? `, next attempt ${fromNow(data.retryAt, now)}` : ""}`
    case "AttemptUnresolved":
      return `attempt ${data.attempt} is in doubt (${error}), Posthaste asks ${fromNow(data.reconcileAt!, now)}`
    case "MessageDelivered":
      return `delivered, proven by the ${data.proof}`
    case "MessageFailed":
      return `refused for good by the ${data.by} (${error})`
    case "MessageDeadLettered":
      return `dead letter${reason} (${error})`
    case "MessageCancelled":
      return `cancelled${reason}`
    case "MessageExpired":
      return "expired"
    case "MessageReplayed":
      return `replayed: epoch ${data.epoch}${data.edited ? " with another body" : ""}${reason}`
    case "MessageBodyErased":
      return `body erased${reason}`
    case "ReceiptRecorded":
      return `the provider reported ${data.receipt}${data.contradicts ? ", which contradicts the status" : ""}`
    default:
      return type
  }
}
