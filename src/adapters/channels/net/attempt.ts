/** One request and its result: collects the answer, settles once, reports an outcome of the domain. */
import type { Clock } from "effect"
import type { Dispatcher } from "undici"
import type { Reply } from "../../../application/ports/Channels.ts"
import { type FailureCode, outcomeOfFailure, outcomeOfStatus, retryAfterMs } from "../../../domain/delivery/classify.ts"
import type { Exchange } from "./connections.ts"
import { BODY_MAX, bodyText } from "./responseBody.ts"

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

export class Attempt implements Exchange {
  readonly url: URL
  readonly request: Dispatcher.DispatchOptions
  readonly #clock: Clock.Clock
  readonly #startedAt: bigint
  readonly #deadline: bigint
  readonly #done: (tried: Tried) => void
  readonly #chunks: Array<Buffer> = []
  #size = 0
  #status: number | null = null
  #headers: Headers = {}
  #begun = false
  #settled = false

  constructor(
    target: { readonly url: URL; readonly timeoutNanos: bigint },
    request: Dispatcher.DispatchOptions,
    clock: Clock.Clock,
    done: (tried: Tried) => void
  ) {
    this.url = target.url
    this.request = request
    this.#clock = clock
    this.#startedAt = clock.monotonicTimeNanosUnsafe()
    this.#deadline = this.#startedAt + target.timeoutNanos
    this.#done = done
  }

  begins(): void {
    this.#begun = true
  }

  answered(status: number, headers: Headers): void {
    this.#status = status
    this.#headers = headers
  }

  received(chunk: Buffer): boolean {
    const room = BODY_MAX - this.#size
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    this.#size += Math.min(chunk.length, room)
    return chunk.length <= room
  }

  ended(failure: FailureCode | null): void {
    this.#settle(failure ?? "response_broken")
  }

  /** True when its time was up; it is settled then. */
  expired(now: bigint): boolean {
    if (now < this.#deadline) return false
    this.#settle("timeout")
    return true
  }

  /** The status is the answer: once it has arrived, no later failure changes it. */
  #settle(failure: FailureCode): void {
    if (this.#settled) return
    this.#settled = true
    const durationMs = Math.round(Number(this.#clock.monotonicTimeNanosUnsafe() - this.#startedAt) / NANOS_PER_MILLI)
    const status = this.#status
    if (status === null) {
      this.#done({ outcome: outcomeOfFailure(failure, durationMs), responseBody: null, begun: this.#begun })
      return
    }

    const retryAfter = single(this.#headers["retry-after"])
    const wait = retryAfter === null ? null : retryAfterMs(retryAfter, this.#clock.currentTimeMillisUnsafe())
    const outcome = outcomeOfStatus(status, durationMs, wait)
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#size)
    bodyText(bytes, encodingOf(this.#headers), (responseBody) => this.#done({ outcome, responseBody, begun: true }))
  }
}
