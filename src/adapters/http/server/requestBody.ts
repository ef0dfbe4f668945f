/**
 * Reads and decodes the body of a request. Bytes are counted while they arrive, whether or not the caller announced
 * their number. A body that is not UTF-8, not JSON, nested too deeply or not in the expected shape is refused with the
 * reason and every wrong field.
 */
import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { ByteSize, Effect, Result, Stream } from "effect"
import { type Headers, HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { AskedFor } from "../../../application/askedFor.ts"
import { type Decode, decoderOf } from "../../api/decoding.ts"
import { isJson, type JsonText, jsonOf, SIZE_MAX, textOf } from "../../api/jsonText.ts"
import { Door, pieceOf } from "./door.ts"
import { Reason } from "./fields.ts"
import {
  invalidFields,
  invalidRequest,
  type Problem,
  tooLarge,
  tooManyNotices,
  unsupportedMediaType
} from "./problem.ts"
import { PIECE } from "./turns.ts"

export { decoderOf }

/** The trace that the caller names, as its header has it. */
export const traceparentOf = ({ headers }: HttpServerRequest.HttpServerRequest): string | null =>
  headers["traceparent"] ?? null

export const limits = {
  single: SIZE_MAX,
  batch: 8 * 1024 * 1024,
  /** Meta sends up to 3 MB at once. */
  notice: 4 * 1024 * 1024
} as const

export const readJson = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.fn.Return<JsonText, Problem, Door> {
  const bytes = yield* readJsonBytes(request, limitBytes)
  if (bytes.length > SMALL_BYTES) yield* turnFor(bytes.length)
  return yield* Effect.fromResult(Result.flatMap(textOf(bytes), (text) => jsonOf(text)))
})

/** What is larger takes the event loop for longer than a small request does, and waits for another turn of its org. */
const SMALL_BYTES = SIZE_MAX / PIECE

const turnFor = (bytes: number) =>
  Effect.flatMap(AskedFor, (org) =>
    org === null ? Effect.void : pieceOf(org, Math.min(Math.ceil(bytes / SMALL_BYTES), PIECE))
  )

/** As `readJson`, for a command whose body may be left out: no body reads as `{}`. */
export const readOptionalJson = (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.Effect<JsonText, Problem, Door> =>
  hasBody(request.headers) ? readJson(request, limitBytes) : Effect.succeed({ text: "{}", value: {} })

const hasBody = ({ "content-length": length, "transfer-encoding": encoding }: Headers.Headers): boolean =>
  encoding !== undefined || (length !== undefined && length !== "0")

/** The bytes of a body that says it is JSON. */
const readJsonBytes = (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.Effect<Uint8Array, Problem> => {
  const { headers } = request
  const refusal = refusalOf(headers, limitBytes)
  if (refusal !== null) return Effect.fail(refusal)
  return (isPlain(request) ? received : receivedAnyhow)(request, limitBytes)
}

/** Whether its caller sends it without being told to, and asks for no other protocol as it sends it. */
const isPlain = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["expect"] === undefined && headers["upgrade"] === undefined

/** What the headers of a request say against reading its body as JSON. */
const refusalOf = (headers: Headers.Headers, limitBytes: number): Problem | null => {
  if (!isJson(headers["content-type"])) {
    return unsupportedMediaType("Send the body with content-type: application/json.")
  }
  if (headers["content-encoding"] !== undefined && headers["content-encoding"] !== "identity") {
    return unsupportedMediaType("Send the body without content-encoding.")
  }
  return Number(headers["content-length"] ?? 0) > limitBytes ? tooLarge(limitBytes) : null
}

/** Whether the body may have more bytes than that of a single request. Whoever does not say how many it sends may send a lot. */
export const isLarge = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  Number(headers["content-length"] ?? limits.batch) > limits.single

/** What `use` makes of the bytes of a body that says it is JSON, however large. It must keep none of them. */
export const useJsonBytes = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
  org: string,
  use: (bytes: Uint8Array) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Problem, R | Door> => {
  if (!isLarge(request)) return Effect.flatMap(readJsonBytes(request, limitBytes), use)
  const refusal = refusalOf(request.headers, limitBytes)
  return refusal === null ? useReceived(request, limitBytes, org, use) : Effect.fail(refusal)
}

/** Received of a large body in one turn of its org. */
const RECEIVED_AT_ONCE = 256 * 1024

/**
 * Node reads on as long as bytes are there: megabytes in one turn of the loop, of each connection. Here they are received in turns of the
 * org, into one piece of memory. That and what they came in go back at once: left to the collection of garbage they made it stop
 * everybody for 11 ms at each seventh body of 8 MiB, and took half of the time that it takes to receive one.
 */
const useReceived = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
  org: string,
  use: (bytes: Uint8Array) => Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Buffer.allocUnsafeSlow(Number(request.headers["content-length"] ?? limitBytes))),
    (whole) =>
      Effect.flatMap(
        isPlain(request) ? flowing(request, limitBytes, org, whole) : pulled(request, limitBytes, org, whole),
        (bytes) => use(whole.subarray(0, bytes))
      ),
    (whole) => Effect.sync(() => giveBack(whole))
  )

/**
 * Takes each chunk as it comes, and answers how many bytes came. Node is not asked for what it has: it would join the chunks that wait,
 * which over TLS are of 16 KiB, and leave all of them to the collection of garbage.
 */
const flowing = (request: HttpServerRequest.HttpServerRequest, limitBytes: number, org: string, whole: Uint8Array) =>
  Effect.flatMap(Door, ({ turns }) =>
    listening<number>(request, (source, end) => {
      const filling = fillingOf(whole)
      return {
        onData: (chunk) => {
          const isTurnOver = filling.put(chunk)
          if (isTurnOver === null) return end(Effect.fail(tooLarge(limitBytes)))
          if (!isTurnOver) return
          source.pause()
          turns.take(org, PIECE, () => source.resume())
        },
        onEnd: () => end(Effect.succeed(filling.bytes()))
      }
    })
  )

/** As `flowing`, of a body that is read by other means. */
const pulled = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
  org: string,
  whole: Uint8Array
) {
  const filling = fillingOf(whole)
  yield* request.stream.pipe(
    Stream.mapError(endedEarly),
    Stream.runForEach((chunk) => {
      const isTurnOver = filling.put(chunk)
      if (isTurnOver === null) return Effect.fail(tooLarge(limitBytes))
      return isTurnOver ? pieceOf(org, PIECE) : Effect.void
    })
  )
  return filling.bytes()
})

/** Chunks become one piece. `put` answers whether they were as much as one turn takes, and null where they do not fit. */
const fillingOf = (whole: Uint8Array) => {
  let bytes = 0
  let inTurn = 0
  const put = (chunk: Uint8Array): boolean | null => {
    if (bytes + chunk.length > whole.length) return null
    whole.set(chunk, bytes)
    bytes += chunk.length
    inTurn += chunk.length
    giveBackAlone(chunk)
    if (inTurn < RECEIVED_AT_ONCE) return false
    inTurn = 0
    return true
  }
  return { put, bytes: () => bytes }
}

const giveBackAlone = (chunk: Uint8Array) => {
  if (chunk.length === chunk.buffer.byteLength) giveBack(chunk)
}

/** The memory of `bytes`, which has nothing else in it, is free at once. */
const giveBack = ({ buffer }: Uint8Array) => {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** Also the body of who waits to be told to send it, or asks for another protocol as it sends it. */
const receivedAnyhow = (request: HttpServerRequest.HttpServerRequest, limitBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
    Effect.mapBoth({
      onSuccess: (bytes) => new Uint8Array(bytes),
      onFailure: ({ reason }) =>
        reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge" ? tooLarge(limitBytes) : endedEarly()
    })
  )

/** What Node hands over. `arrayBuffer` takes five times as long: it runs a fiber of its own, and waits for the stream to close. */
const received = (request: HttpServerRequest.HttpServerRequest, limitBytes: number) =>
  listening<Uint8Array>(request, (_source, end) => {
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    return {
      onData: (chunk) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > limitBytes) end(Effect.fail(tooLarge(limitBytes)))
      },
      onEnd: () => end(Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    }
  })

interface Listener {
  readonly onData: (chunk: Uint8Array) => void
  readonly onEnd: () => void
}

/** Listens to the body until `end` is called, or its caller is gone. */
const listening = <A>(
  request: HttpServerRequest.HttpServerRequest,
  listenerOf: (source: IncomingMessage, end: (result: Effect.Effect<A, Problem>) => void) => Listener
) =>
  Effect.callback<A, Problem>((resume) => {
    const source = NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage
    const end = (result: Effect.Effect<A, Problem>) => {
      leave()
      resume(result)
    }
    const { onData, onEnd } = listenerOf(source, end)
    const onBroken = () => end(Effect.fail(endedEarly()))
    const leave = () => {
      source.off("data", onData).off("end", onEnd).off("close", onBroken)
      // What still comes is read and forgotten, so that the connection can be used again.
      source.resume()
    }
    if (source.destroyed) return onBroken()
    source.on("data", onData).on("end", onEnd).on("close", onBroken)
    return Effect.sync(leave)
  })

const endedEarly = () => invalidRequest("The body ended before it was complete.")

/** Memory for the bodies of callers who have not proven who they are. What is held is counted, not what is announced. */
export interface Memory {
  held: number
  readonly max: number
}

/** As `readBytes`, and no more than `memory` has for all such callers together. */
export const readStrangersBytes = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
  memory: Memory
) {
  const { headers } = request
  if (headers["content-encoding"] !== undefined && headers["content-encoding"] !== "identity") {
    return yield* unsupportedMediaType("Send the body without content-encoding.")
  }
  if (Number(headers["content-length"] ?? 0) > limitBytes) return yield* tooLarge(limitBytes)
  let held = 0
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      memory.held -= held
    })
  )
  const chunks: Array<Uint8Array> = []
  yield* request.stream.pipe(
    Stream.mapError(endedEarly),
    Stream.runForEach((chunk) => {
      if (held + chunk.length > limitBytes) return Effect.fail(tooLarge(limitBytes))
      if (memory.held + chunk.length > memory.max) return Effect.fail(tooManyNotices())
      held += chunk.length
      memory.held += chunk.length
      chunks.push(chunk)
      return Effect.void
    })
  )
  return Buffer.concat(chunks)
})

/** The decoded body, or every wrong field. */
export const decoded = <A>(decode: Decode<A>, { value }: JsonText): Effect.Effect<A, Problem> =>
  Effect.fromResult(Result.mapError(decode(value), invalidFields))

/** The decoded body of a request about one thing. */
export const bodyOf = <A>(request: HttpServerRequest.HttpServerRequest, decode: Decode<A>) =>
  Effect.flatMap(readJson(request, limits.single), (json) => decoded(decode, json))

const decodeReason = decoderOf(Reason)

/** The reason of a command. It and the whole body may be left out. */
export const readReason = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { reason } = yield* decoded(decodeReason, yield* readOptionalJson(request, limits.single))
  return reason ?? null
})
