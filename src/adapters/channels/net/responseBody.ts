/**
 * Keeps at most 64 KiB of an answer's decoded body. Few bytes can unfold into gigabytes, so decoding stops at the cap.
 * Bodies with several or unknown encodings are dropped.
 */
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, constants as zlib } from "node:zlib"

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
