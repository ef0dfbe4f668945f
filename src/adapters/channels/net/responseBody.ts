/**
 * The part of an answer's body that is kept: at most 64 KiB of text after decoding. We ask for no encoding, but an
 * answer may be encoded all the same, and a few bytes of it can unfold into gigabytes: decoding stops at the cap. A
 * body with several encodings or an unknown one is dropped.
 */
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, constants as zlib } from "node:zlib"

export const BODY_MAX = 64 * 1024

/** An answer cut short decodes as far as it goes. */
const decoders = {
  gzip: () => createGunzip({ finishFlush: zlib.Z_SYNC_FLUSH }),
  "x-gzip": () => createGunzip({ finishFlush: zlib.Z_SYNC_FLUSH }),
  deflate: () => createInflate({ finishFlush: zlib.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ finishFlush: zlib.BROTLI_OPERATION_FLUSH })
}

/** Text that any store can hold: NUL is not text to PostgreSQL. Null when there is none. */
const textOf = (bytes: Buffer): string | null =>
  bytes.length === 0 ? null : bytes.toString().replaceAll("\0", "\ufffd")

const isKnown = (encoding: string): encoding is keyof typeof decoders => Object.hasOwn(decoders, encoding)

/** Calls `done` once, at once unless there is something to decode. `bytes` is already capped. */
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
    // Text that was decoded before the bytes became invalid is kept: the destination said that much.
    .on("error", () => {})
    .once("close", () => done(textOf(Buffer.concat(chunks, size))))
    .end(bytes)
}
