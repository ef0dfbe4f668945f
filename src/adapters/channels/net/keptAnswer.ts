/**
 * The parts of an answer that are kept with an attempt. Few bytes of a body can unfold into gigabytes, so decoding
 * stops at the cap.
 */
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, constants as zlib } from "node:zlib"
import type { Headers } from "../../../application/ports/Channels.ts"
import { MASKED } from "../../../domain/delivery/exchange.ts"
import type { AnswerHeaders } from "./connections.ts"

export const BODY_MAX = 64 * 1024

/** Flush modes that decode a truncated answer as far as it goes. */
const decoders = {
  gzip: () => createGunzip({ finishFlush: zlib.Z_SYNC_FLUSH }),
  "x-gzip": () => createGunzip({ finishFlush: zlib.Z_SYNC_FLUSH }),
  deflate: () => createInflate({ finishFlush: zlib.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ finishFlush: zlib.BROTLI_OPERATION_FLUSH })
}

/** PostgreSQL holds no NUL. Null when empty. */
const textOf = (bytes: Buffer): string | null =>
  bytes.length === 0 ? null : bytes.toString().replaceAll("\0", "\ufffd")

const isKnown = (encoding: string): encoding is keyof typeof decoders => Object.hasOwn(decoders, encoding)

/** `bytes` is already capped. `done` is called once, synchronously unless there is something to decode. */
export const bodyText = (bytes: Buffer, encoding: string | null, done: (text: string | null) => void): void => {
  if (encoding === null || encoding === "identity") done(textOf(bytes))
  else if (isKnown(encoding)) decode(bytes, decoders[encoding](), done)
  else done(null)
}

const decode = (bytes: Buffer, decoder: Transform, done: (text: string | null) => void): void => {
  const chunks: Array<Buffer> = []
  let size = 0
  decoder
    .on("data", (chunk: Buffer) => {
      const kept = chunk.subarray(0, BODY_MAX - size)
      chunks.push(kept)
      size += kept.length
      if (size === BODY_MAX) decoder.destroy()
    })
    // Keeps the text decoded before the bytes became invalid.
    .on("error", () => {})
    .once("close", () => done(textOf(Buffer.concat(chunks, size))))
    .end(bytes)
}

const HEADERS_MAX = 32
const LENGTH_MAX = 256

const ofConnection = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "trailer"])

const ofEveryAnswer = new Set(["date", "content-length", "content-type"])

const mayBeSecret = /cookie|authoriz|authentic|token|secret|signature|password|api-?key/

const saysMore = (headers: AnswerHeaders): boolean => {
  for (const name in headers) if (!ofEveryAnswer.has(name) && !ofConnection.has(name)) return true
  return false
}

/**
 * A few short headers, without cookies and tokens. An answer without a body is kept only for unusual headers: a row for
 * each attempt costs more than the rest of it.
 */
export const keptHeaders = (headers: AnswerHeaders, hasBody: boolean): Headers | null => {
  if (!hasBody && !saysMore(headers)) return null
  const kept: Record<string, string> = {}
  let count = 0
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || ofConnection.has(name) || count === HEADERS_MAX || name.length > LENGTH_MAX) continue
    const text = typeof value === "string" ? value : value.join(", ")
    kept[name] = mayBeSecret.test(name) ? MASKED : text.slice(0, LENGTH_MAX).replaceAll("\0", "\ufffd")
    count += 1
  }
  return count > 0 ? kept : null
}
