/** The meaning of the client's errors. */
import { ErrorType } from "@eventstore/db-client"
import { StoreUnavailable } from "../../application/ports/errors.ts"

export const unavailable = (cause: unknown) => new StoreUnavailable({ cause, says: saysOf(cause) })

export const saysOf = (cause: unknown): string =>
  typeOf(cause) === ErrorType.ACCESS_DENIED
    ? "EventStoreDB does not accept the user and password in EVENTSTORE_URL"
    : `EventStoreDB does not answer (${wordsOf(cause)})`

export const noAnswer = new Error("no answer in time")

/**
 * True for an error without an answer: a deadline, or a channel that the client gave up for all its calls. Taken for an
 * answer, each caller would wait for the silences of all.
 */
export const isSilence = (cause: unknown): boolean =>
  cause === noAnswer || typeOf(cause) === ErrorType.DEADLINE_EXCEEDED || isOwnEnd(cause)
const isOwnEnd = (cause: unknown): boolean =>
  cause instanceof Error && /channel (closed|has been shut down)/i.test(cause.message)

export const unavailableStatus = { code: 14, details: "no answer", metadata: undefined }

const wordsOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message.split("\n", 1)[0]!.slice(0, 200) : String(cause)

const UNAUTHENTICATED = 16

/** The client's name for an error; for a read made here, the server's. */
export const typeOf = (cause: unknown): unknown => {
  if (typeof cause !== "object" || cause === null) return null
  if ("type" in cause) return cause.type
  const { metadata, code } = cause as {
    readonly code?: unknown
    readonly metadata?: { readonly get?: (name: string) => ReadonlyArray<unknown> }
  }
  return metadata?.get?.("exception")[0] ?? (code === UNAUTHENTICATED ? ErrorType.ACCESS_DENIED : null)
}

/** Errors that stay. After any other the call may or may not have been carried out. */
const finals: ReadonlySet<unknown> = new Set([
  ErrorType.WRONG_EXPECTED_VERSION,
  ErrorType.ACCESS_DENIED,
  ErrorType.INVALID_ARGUMENT,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
  ErrorType.STREAM_DELETED
])
export const isFinal = (cause: unknown): boolean => finals.has(typeOf(cause))

/** A removed stream reads like an absent one. */
const absents: ReadonlySet<unknown> = new Set([
  ErrorType.STREAM_NOT_FOUND,
  ErrorType.STREAM_DELETED,
  ErrorType.WRONG_EXPECTED_VERSION
])
export const isAbsent = (cause: unknown): boolean => absents.has(typeOf(cause))
