/**
 * What a call to Posthaste can end with. `ProblemError` and its kinds carry the problem document (RFC 9457) that Posthaste
 * answered; `ConnectionError` and `TimeoutError` say that no answer came, so what was asked may or may not have been done.
 */

/** The answer to a request that failed: what is wrong, and which fields. */
export interface ProblemDocument {
  /** Names the kind of problem; stable across releases. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  /** Every wrong field with its path in the request. */
  readonly errors: ReadonlyArray<{ readonly field: string; readonly reason: string }>
}

/** The root of all errors of this package, also of `posthaste/webhooks`. */
export class PosthasteError extends Error {
  override readonly name: string = "PosthasteError"
}

/** No answer came: the service could not be reached, or the connection broke. `cause` has the reason. */
export class ConnectionError extends PosthasteError {
  override readonly name = "ConnectionError"
}

/** No answer came in time. */
export class TimeoutError extends PosthasteError {
  override readonly name = "TimeoutError"
}

/** Posthaste answered no. */
export class ProblemError extends PosthasteError {
  override readonly name: string = "ProblemError"
  readonly status: number
  readonly problem: ProblemDocument
  /** How long Posthaste asks to wait before the next try, where it does. */
  readonly retryAfterMs: number | undefined

  constructor(problem: ProblemDocument, retryAfterMs?: number) {
    super(`${problem.status} ${problem.title}: ${problem.detail}`)
    this.status = problem.status
    this.problem = problem
    this.retryAfterMs = retryAfterMs
  }
}

/** The request has to change: 400, 413, 415 and 422. `problem.errors` names the wrong fields. */
export class InvalidRequestError extends ProblemError {
  override readonly name = "InvalidRequestError"
}
/** The API key is missing, wrong, revoked or expired: 401. */
export class AuthenticationError extends ProblemError {
  override readonly name = "AuthenticationError"
}
/** The key may not do that, or a consent forbids it: 403. */
export class ForbiddenError extends ProblemError {
  override readonly name = "ForbiddenError"
}
/** There is nothing with this id in the org: 404. */
export class NotFoundError extends ProblemError {
  override readonly name = "NotFoundError"
}
/** The state of the thing, or an earlier request with the same idempotency key, does not allow it: 409. */
export class ConflictError extends ProblemError {
  override readonly name = "ConflictError"
}
/** Too much at once: 429. */
export class TooManyRequestsError extends ProblemError {
  override readonly name = "TooManyRequestsError"
}
/** Posthaste can't answer at the moment: 503. */
export class UnavailableError extends ProblemError {
  override readonly name = "UnavailableError"
}

const kinds: Readonly<Record<number, typeof ProblemError>> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  422: InvalidRequestError,
  429: TooManyRequestsError,
  503: UnavailableError
}

/** The error of an answer that is no success. What a proxy in between answers becomes a problem document too. */
export const problemErrorOf = (
  status: number,
  contentType: string,
  text: string,
  retryAfterMs: number | undefined
): ProblemError => new (kinds[status] ?? ProblemError)(problemOf(status, contentType, text), retryAfterMs)

const problemOf = (status: number, contentType: string, text: string): ProblemDocument => {
  const plain = {
    type: "about:blank",
    title: "Not an answer of Posthaste",
    status,
    detail: text.slice(0, 500),
    errors: []
  }
  if (!contentType.includes("json")) return plain
  try {
    const document = JSON.parse(text) as Partial<ProblemDocument> | null
    return typeof document?.title === "string" ? { ...plain, detail: "", ...document } : plain
  } catch {
    return plain
  }
}
