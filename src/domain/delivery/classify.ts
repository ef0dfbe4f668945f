/**
 * The meaning of a destination's answer: taken, refused for now, or refused for good, for channels that answer an HTTP
 * status. Waiting and giving up belong to the retry policy and the decider.
 */
import type { DeliveryError } from "./DeliveryError.ts"
import type { AttemptOutcome } from "./outcome.ts"

export type StatusClass = "accepted" | "retry" | "refused"

/** 4xx that say "not now": request timeout, conflict with work under way, too early, too many requests. */
const transient: ReadonlySet<number> = new Set([408, 409, 425, 429])

/**
 * Only 2xx is a yes and only a lasting 4xx is a no. A redirect is a failure: following one would turn the POST into a
 * GET.
 */
export const classifyStatus = (status: number): StatusClass => {
  if (status >= 200 && status < 300) return "accepted"
  return status >= 400 && status < 500 && !transient.has(status) ? "refused" : "retry"
}

/** Errors without a usable answer. The org reads the texts, so they contain no address. */
const failures = {
  timeout: { message: "no answer within the time allowed", retryable: true },
  connection_failed: { message: "the connection could not be made or was closed before an answer", retryable: true },
  dns_failed: { message: "the host name could not be resolved", retryable: true },
  tls_failed: { message: "no trusted TLS connection could be made", retryable: true },
  response_broken: { message: "the answer was not valid HTTP", retryable: true },
  store_unavailable: { message: "Posthaste could not read the destination's settings", retryable: true, ours: "lane" },
  no_descriptors: {
    message: "Posthaste could open no connection: it has no file descriptor left",
    retryable: true,
    ours: "message"
  },
  proxy_failed: {
    message: "Posthaste's way out, its egress proxy, let no connection through",
    retryable: true,
    ours: "lane"
  },
  forbidden_address: { message: "the host resolves to an address Posthaste may not call", retryable: false },
  destination_missing: { message: "the destination does not exist", retryable: false },
  endpoint_missing: { message: "the endpoint does not exist", retryable: false },
  endpoint_invalid: { message: "the endpoint's settings are not allowed", retryable: false },
  target_missing: { message: "the HTTP target does not exist", retryable: false },
  target_invalid: { message: "the HTTP target's settings are not allowed", retryable: false },
  account_missing: { message: "the WhatsApp account does not exist", retryable: false },
  amqp_target_missing: { message: "the AMQP target does not exist", retryable: false },
  amqp_target_invalid: { message: "the AMQP target's settings are not allowed", retryable: false },
  not_routed: { message: "the broker returned the message: no queue is bound for its routing key", retryable: false },
  nacked: { message: "the broker refused the message (nack)", retryable: true },
  unconfirmed: { message: "the connection ended before the broker confirmed the message", retryable: true },
  channel_closed: { message: "the broker closed the channel before it confirmed the message", retryable: true },
  exchange_missing: { message: "the exchange does not exist", retryable: true },
  login_refused: { message: "the broker refused the user, or its right to the exchange", retryable: true },
  broker_blocked: { message: "the broker takes no messages for now (connection.blocked)", retryable: true },
  payload_invalid: { message: "the payload says neither a template nor a text that could be sent", retryable: false }
} as const satisfies Record<string, Omit<DeliveryError, "code"> & { readonly ours?: "lane" | "message" }>

export type FailureCode = keyof typeof failures

/** Codes of attempts whose destination does not exist. An exchange is only a part of one. */
export const missingCodes: ReadonlyArray<string> = Object.keys(failures).filter(
  (code) => code.endsWith("_missing") && code !== "exchange_missing"
)

const OURS_AFTER_MS = 5_000

export const outcomeOfFailure = (code: FailureCode, durationMs: number, detail?: string): AttemptOutcome => {
  const failure = failures[code]
  const { message, retryable } = failure
  const error = { code, message: detail === undefined ? message : `${message}: ${detail}`, retryable }
  if ("ours" in failure) {
    return { type: "Deferred", error, status: null, scope: failure.ours, afterMs: OURS_AFTER_MS, durationMs }
  }
  return retryable
    ? { type: "Unreachable", error, status: null, retryAfterMs: null, durationMs }
    : { type: "Refused", error, status: null, durationMs }
}

/**
 * The outcome of an attempt that the destination could not take; it does not count. `lane`: ask again after a while.
 * `circuit`: until a person has repaired the destination.
 */
export const deferredBy = (
  code: FailureCode,
  scope: "lane" | "circuit",
  afterMs: number,
  durationMs: number,
  detail?: string
): AttemptOutcome => {
  const { error } = outcomeOfFailure(code, durationMs, detail) as { readonly error: DeliveryError }
  return { type: "Deferred", error, status: null, scope, afterMs, durationMs }
}

export const outcomeOfStatus = (status: number, durationMs: number, retryAfterMs: number | null): AttemptOutcome => {
  const kind = classifyStatus(status)
  if (kind === "accepted") return { type: "Accepted", status, providerMessageId: null, delivered: true, durationMs }
  const redirect = status >= 300 && status < 400
  const error = {
    code: redirect ? "redirect" : `http_${status}`,
    message: redirect ? `answered ${status}; redirects are not followed` : `answered ${status}`,
    retryable: kind === "retry"
  }
  return kind === "retry"
    ? { type: "Unreachable", error, status, retryAfterMs, durationMs }
    : { type: "Refused", error, status, durationMs }
}

/** The wait before asking about a request that the destination may have taken. */
export const RECONCILE_AFTER_MS = 5_000

/**
 * Statuses that prove that the request was not taken. Any other, 503 and a redirect too, may come from a proxy that had
 * passed it on.
 */
const turnedAway: ReadonlySet<number> = new Set([408, 429])

/**
 * The outcome at a destination that drops no duplicates: sending again is allowed only if no byte had left (`begun` is
 * false) or the answer says that the request was not taken.
 */
export const withoutDedupe = (outcome: AttemptOutcome, begun: boolean): AttemptOutcome => {
  if (outcome.type !== "Unreachable" || !begun) return outcome
  const { status, error, durationMs } = outcome
  if (status !== null && turnedAway.has(status)) return outcome
  return { type: "Unknown", error, status, reconcileAfterMs: RECONCILE_AFTER_MS, durationMs }
}

/** The one date form that HTTP still writes. `Date.parse` alone would read a date into "apples 5". */
const httpDate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * Milliseconds from `now` that a `Retry-After` header asks for; null when it is unreadable, 0 when the moment has
 * passed.
 */
export const retryAfterMs = (header: string | null | undefined, now: number): number | null => {
  const text = header?.trim() ?? ""
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER)
  if (!httpDate.test(text)) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
