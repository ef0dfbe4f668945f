/** One request and its result: collects the answer, settles once. */
import { type Clock, DateTime } from "effect"
import type { Dispatcher } from "undici"
import type { Reply } from "../../../application/ports/Channels.ts"
import { type FailureCode, outcomeOfFailure, outcomeOfStatus, retryAfterMs } from "../../../domain/delivery/classify.ts"
import type { Exchange as Measured } from "../../../domain/delivery/exchange.ts"
import type { AnswerHeaders, Exchange } from "./connections.ts"
import type { Steps } from "./guardedConnect.ts"
import { BODY_MAX, bodyText, keptHeaders } from "./keptAnswer.ts"
import type { Destination, Expiring } from "./tries.ts"

const NANOS_PER_MILLI = 1_000_000
/** Keeps the beginning of a body that comes in crumbs: each takes 100 bytes of memory. */
const PIECES_MAX = 4_096

/** Result of a try; `begun`: a byte may have left, so the request can have had an effect. */
export interface Tried extends Reply {
  readonly begun: boolean
  readonly exchange: Measured
}

/** Ignores a repeated header: its values may contradict each other. */
const single = (header: string | string[] | undefined): string | null => (typeof header === "string" ? header : null)

/** Joins several encodings, to tell them from none. */
const encodingOf = (headers: AnswerHeaders): string | null =>
  headers["content-encoding"] === undefined ? null : String(headers["content-encoding"]).trim().toLowerCase()

export interface Attempt extends Exchange, Expiring {}

export const makeAttempt = (
  { url, version, pool, secureContext, timeoutNanos }: Destination,
  request: Dispatcher.DispatchOptions,
  sentAt: number,
  clock: Clock.Clock,
  done: (tried: Tried) => void
): Attempt => {
  const startedAt = clock.monotonicTimeNanosUnsafe()
  const deadline = startedAt + timeoutNanos
  const chunks: Array<Buffer> = []
  let size = 0
  let status: number | null = null
  let headers: AnswerHeaders = {}
  let begunAt: bigint | null = null
  let answeredAt: bigint | null = null
  let address: string | undefined
  let steps: Steps | null = null
  let settled = false

  const msSince = (from: bigint, to: bigint) => Math.round(Number(to - from) / NANOS_PER_MILLI)

  const exchange = (): Measured => ({
    settings: version,
    sentAt: DateTime.makeUnsafe(sentAt),
    ...(address !== undefined && { address }),
    ...steps,
    ...(begunAt !== null && answeredAt !== null && { firstByteMs: msSince(begunAt, answeredAt) })
  })

  /** Once a status has arrived, no later failure changes it. */
  const settle = (failure: FailureCode): void => {
    if (settled) return
    settled = true
    const durationMs = msSince(startedAt, clock.monotonicTimeNanosUnsafe())
    if (status === null) {
      const outcome = outcomeOfFailure(failure, durationMs)
      done({ outcome, responseBody: null, begun: begunAt !== null, exchange: exchange() })
      return
    }
    const retryAfter = single(headers["retry-after"])
    const wait = retryAfter === null ? null : retryAfterMs(retryAfter, clock.currentTimeMillisUnsafe())
    const outcome = outcomeOfStatus(status, durationMs, wait)
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
    bodyText(bytes, encodingOf(headers), (responseBody) => {
      const responseHeaders = keptHeaders(headers, responseBody !== null)
      done({
        ...{ outcome, responseBody, begun: true, exchange: exchange() },
        ...(responseHeaders !== null && { responseHeaders })
      })
    })
  }

  return {
    url,
    pool,
    secureContext,
    request,
    connecting: (making) => {
      steps = making
    },
    begins: (to) => {
      begunAt = clock.monotonicTimeNanosUnsafe()
      address = to
    },
    answered: (answeredStatus, answeredHeaders) => {
      answeredAt = clock.monotonicTimeNanosUnsafe()
      status = answeredStatus
      headers = answeredHeaders
    },
    received: (chunk) => {
      if (chunks.length === PIECES_MAX) return false
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
