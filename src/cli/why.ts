/**
 * Why a message is where it is, in a sentence, from what the API tells of it and of its destination. Data in, data out.
 */
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

/** What is known of where it goes; null where nobody could tell. */
export interface Surroundings {
  readonly destination: {
    readonly paused: boolean
    readonly rateLimit: { readonly limit: number; readonly periodMs: number } | null
  } | null
  readonly circuit: { readonly status: string; readonly openUntil: string | null } | null
  /** The message before it with the same ordering key, which is not through. */
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
        ? `attempt ${message.attempts} may have been taken: its destination is asked about it ${fromNow(doubt.data.reconcileAt!, now)}`
        : `attempt ${message.attempts} is under way since ${fromNow(doubt?.at ?? message.createdAt, now)}`
    }
    case "SENT":
      return "its destination has taken it; what is missing is the proof that it arrived"
    case "DELIVERED":
      return last?.type === "MessageDelivered" && last.data.proof === "receipt"
        ? "a receipt proves that it arrived"
        : "its destination answered that it has it"
    case "FAILED":
      return `it was refused for good${errorIn(message)}. posthaste dead-letters replay --id ${message.id} sends it again`
    case "DEAD_LETTER":
      return `no attempt is left${errorIn(message)}. posthaste dead-letters replay --id ${message.id} sends it again`
    case "CANCELLED":
      return "somebody cancelled it before it was sent"
    case "EXPIRED":
      return "its time was up before it could be sent"
    default:
      return ""
  }
}

const errorIn = ({ lastError }: Message) => (lastError === null ? "" : ` (${lastError.code}: ${lastError.message})`)

const whyQueued = (message: Message, { destination, circuit, before }: Surroundings, now: number): string => {
  const due = message.nextAttemptAt
  const isDue = due === null || Date.parse(due) <= now
  if (before !== null) {
    return `it stands behind ${before.id} (${before.status}), which has the same ordering key and goes first`
  }
  if (destination?.paused) return "its destination is paused: it waits until somebody resumes it"
  if (circuit?.status === "HELD") return "the circuit of its destination is held by hand: it waits for a reset"
  if (circuit !== null && circuit.status !== "CLOSED") {
    const until = circuit.openUntil === null ? "" : `; the next probe goes ${fromNow(circuit.openUntil, now)}`
    return `the circuit of its destination is ${circuit.status}: nothing but probes is sent there${until}`
  }
  if (!isDue) {
    return message.attempts === 0
      ? `it is not due yet: it goes ${fromNow(due, now)}`
      : `attempt ${message.attempts} failed${errorIn(message)}: the next goes ${fromNow(due, now)}`
  }
  const { rateLimit } = destination ?? { rateLimit: null }
  return rateLimit === null
    ? "it is due, and goes as soon as a worker has a place for it"
    : `it is due, and waits for its turn: its destination takes ${rateLimit.limit} every ${rateLimit.periodMs} ms`
}

/** What a fact says, for people. */
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
      return `attempt ${data.attempt} was taken${data.status ? ` with ${data.status}` : ""}${took}`
    case "AttemptFailed":
      return `attempt ${data.attempt} failed${took} (${error})${data.retryAt ? `, next ${fromNow(data.retryAt, now)}` : ", no further one"}`
    case "AttemptDeferred":
      return `attempt ${data.attempt} was put off and does not count (${error}), next ${fromNow(data.dueAt!, now)}`
    case "AttemptAbandoned":
      return `attempt ${data.attempt} was abandoned${reason}${data.retryAt ? `, next ${fromNow(data.retryAt, now)}` : ""}`
    case "AttemptUnresolved":
      return `attempt ${data.attempt} is in doubt (${error}), asked about ${fromNow(data.reconcileAt!, now)}`
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
