/** One request and its result: collects the answer, settles once, reports an outcome of the domain. */
import type { Clock } from "effect"
import type { Dispatcher } from "undici"
import type { Reply } from "../../../application/ports/Channels.ts"
import { type FailureCode, outcomeOfFailure, outcomeOfStatus, retryAfterMs } from "../../../domain/delivery/classify.ts"
import type { Exchange } from "./connections.ts"
import type { Expiring } from "./deadlines.ts"
import { BODY_MAX, bodyText } from "./responseBody.ts"
import type { Destination } from "./tries.ts"

const NANOS_PER_MILLI = 1_000_000

/** The result, and whether any byte of the request may have left: only then can the request have had an effect. */
export interface Tried extends Reply {
  readonly begun: boolean
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** A repeated header is ignored: its values may contradict each other. */
const single = (header: string | string[] | undefined): string | null => (typeof header === "string" ? header : null)

/** Several encodings, listed or repeated, are told apart from none. */
const encodingOf = (headers: Headers): string | null =>
  headers["content-encoding"] === undefined ? null : String(headers["content-encoding"]).trim().toLowerCase()

export interface Attempt extends Exchange, Expiring {}

/** `done` is called once. */
export const makeAttempt = (
  { url, pool, secureContext, timeoutNanos }: Destination,
  request: Dispatcher.DispatchOptions,
  clock: Clock.Clock,
  done: (tried: Tried) => void
): Attempt => {
  const startedAt = clock.monotonicTimeNanosUnsafe()
  const deadline = startedAt + timeoutNanos
  const chunks: Array<Buffer> = []
  let size = 0
  let status: number | null = null
  let headers: Headers = {}
  let begun = false
  let settled = false

  /** The status is the answer: once it has arrived, no later failure changes it. */
  const settle = (failure: FailureCode): void => {
    if (settled) return
    settled = true
    const durationMs = Math.round(Number(clock.monotonicTimeNanosUnsafe() - startedAt) / NANOS_PER_MILLI)
    if (status === null) {
      done({ outcome: outcomeOfFailure(failure, durationMs), responseBody: null, begun })
      return
    }
    const retryAfter = single(headers["retry-after"])
    const wait = retryAfter === null ? null : retryAfterMs(retryAfter, clock.currentTimeMillisUnsafe())
    const outcome = outcomeOfStatus(status, durationMs, wait)
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
    bodyText(bytes, encodingOf(headers), (responseBody) => done({ outcome, responseBody, begun: true }))
  }

  return {
    url,
    pool,
    secureContext,
    request,
    begins: () => {
      begun = true
    },
    answered: (answeredStatus, answeredHeaders) => {
      status = answeredStatus
      headers = answeredHeaders
    },
    received: (chunk) => {
      const room = BODY_MAX - size
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
      size += Math.min(chunk.length, room)
      return chunk.length <= room
    },
    ended: (failure) => settle(failure ?? "response_broken"),
    expired: (now) => {
      if (now < deadline) return false
      settle("timeout")
      return true
    }
  }
}
