/** Messages, causes and facts as lines for people. */
import type { MessageDetails } from "../domain/message/facts.ts"
import type { Trouble } from "./service.ts"
import { distance, fromNow } from "./terminal.ts"

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

export interface Cause {
  readonly says: string
  readonly since: string | null
  readonly until: string | null
}

export interface Explanation extends Cause {
  readonly reason: string
  readonly also: ReadonlyArray<Cause>
  readonly next: string
  readonly ahead: number | null
  readonly actions: ReadonlyArray<{ readonly action: string; readonly says: string; readonly path: string }>
  readonly restored: { readonly says: string } | null
  readonly unknown: ReadonlyArray<string>
  readonly troubles: ReadonlyArray<Trouble>
}

export const causeOf = ({ says, since, until }: Cause, now: number): string => {
  const times = [
    ...(since === null ? [] : [`since ${sinceOf(since, now)}`]),
    ...(until === null ? [] : [`until ${fromNow(until, now)}`])
  ]
  return times.length === 0 ? says : `${says} (${times.join(", ")})`
}

const sinceOf = (since: string, now: number): string => {
  const ms = now - Date.parse(since)
  return ms < 0 ? since : distance(ms)
}

/** An action as a command, or as a request where no command does it. */
export const commandOf = ({ action, path }: Explanation["actions"][number]): string => {
  const [id] = path.match(/[0-9a-f-]{36}/) ?? [""]
  if (action === "resume" || action === "enable" || action === "reset") return `posthaste destinations ${action} ${id}`
  if (action === "resend") return `posthaste resend ${id}`
  if (action === "cancel") return `posthaste cancel --id ${id}`
  if (action === "retry-now") return `posthaste retry-now ${id}`
  if (action === "dismiss") return `posthaste dead-letters dismiss --id ${id}`
  return action === "replay" ? `posthaste dead-letters replay --id ${id}` : `POST ${path}`
}

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
    case "MessageHurried":
      return "hurried by a person: due at once"
    case "MessageDismissed":
      return `dismissed by a person${reason}`
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
