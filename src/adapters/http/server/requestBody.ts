/**
 * Reads and decodes the body of a request. Bytes are counted while they arrive, whatever was announced; a refusal names
 * every wrong field.
 */
import type { IncomingMessage } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Result } from "effect"
import type { Headers, HttpServerRequest } from "effect/http"
import { type Decode, decoderOf } from "../../api/decoding.ts"
import { isJson, type JsonText, jsonOf, SIZE_MAX, textOf } from "../../api/jsonText.ts"
import { Reason } from "./fields.ts"
import { invalidFields, invalidRequest, type Problem, tooLarge, unsupportedMediaType } from "./problem.ts"

export { decoderOf }

type Request = HttpServerRequest.HttpServerRequest

export const traceparentOf = ({ headers }: Request): string | null => headers["traceparent"] ?? null

export const limits = {
  single: SIZE_MAX,
  batch: 1024 * 1024,
  /** WhatsApp receipts; Meta's notices have some kilobytes. */
  notice: 256 * 1024
} as const

export const readBytes = (request: Request, limitBytes: number): Effect.Effect<Uint8Array, Problem> => {
  const { "content-encoding": encoding, "content-length": length = 0 } = request.headers
  if (encoding !== undefined && encoding !== "identity") {
    return Effect.fail(unsupportedMediaType("Send the body without content-encoding."))
  }
  return Number(length) > limitBytes ? Effect.fail(tooLarge(limitBytes)) : received(request, limitBytes)
}

/** Effect's `arrayBuffer` takes five times as long. */
const received = (request: Request, limitBytes: number) =>
  Effect.callback<Uint8Array, Problem>((resume) => {
    const source = NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    const leave = () => {
      source.off("data", onData).off("end", onEnd).off("close", onBroken)
      // Reads and drops the rest, so that the connection can be used again.
      source.resume()
    }
    const end = (result: Effect.Effect<Uint8Array, Problem>) => {
      leave()
      resume(result)
    }
    const onData = (chunk: Uint8Array) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > limitBytes) end(Effect.fail(tooLarge(limitBytes)))
    }
    const onEnd = () => end(Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const onBroken = () => end(Effect.fail(invalidRequest("The body ended before it was complete.")))
    if (source.destroyed) return onBroken()
    source.on("data", onData).on("end", onEnd).on("close", onBroken)
    return Effect.sync(leave)
  })

const readJsonBytes = (request: Request, limitBytes: number): Effect.Effect<Uint8Array, Problem> =>
  isJson(request.headers["content-type"])
    ? readBytes(request, limitBytes)
    : Effect.fail(unsupportedMediaType("Send the body with content-type: application/json."))

export const readJson = (request: Request, limitBytes: number): Effect.Effect<JsonText, Problem> =>
  Effect.flatMap(readJsonBytes(request, limitBytes), (bytes) =>
    Effect.fromResult(Result.flatMap(textOf(bytes), (text) => jsonOf(text)))
  )

/** Reads no body as `{}`. */
export const readOptionalJson = (request: Request, limitBytes: number): Effect.Effect<JsonText, Problem> =>
  hasBody(request.headers) ? readJson(request, limitBytes) : Effect.succeed({ text: "{}", value: {} })

const hasBody = ({ "content-length": length, "transfer-encoding": encoding }: Headers.Headers): boolean =>
  encoding !== undefined || (length !== undefined && length !== "0")

export const decoded = <A>(decode: Decode<A>, { value }: JsonText): Effect.Effect<A, Problem> =>
  Effect.fromResult(Result.mapError(decode(value), invalidFields))

export const bodyOf = <A>(request: Request, decode: Decode<A>) =>
  Effect.flatMap(readJson(request, limits.single), (json) => decoded(decode, json))

const decodeReason = decoderOf(Reason)

/** The reason of a command; it and the body may be left out. */
export const readReason = Effect.fnUntraced(function* (request: Request) {
  const { reason } = yield* decoded(decodeReason, yield* readOptionalJson(request, limits.single))
  return reason ?? null
})
