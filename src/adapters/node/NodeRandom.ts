/**
 * Effect's dice, thrown by the operating system, so that nobody can guess the next message id from the
 * ones they have seen. Bytes are drawn in blocks, because asking for 8 at a time costs more than the id.
 */
import { randomFillSync } from "node:crypto"
import { Layer, Random } from "effect"

const BLOCK_BYTES = 8192

const block = Buffer.alloc(BLOCK_BYTES)
let used = BLOCK_BYTES

const next53Bits = (): number => {
  if (used === BLOCK_BYTES) {
    randomFillSync(block)
    used = 0
  }
  const high = block.readUInt32LE(used) & 0x1f_ffff
  const low = block.readUInt32LE(used + 4)
  used += 8
  return high * 2 ** 32 + low
}

export const layer = Layer.succeed(Random.Random, {
  nextDoubleUnsafe: () => next53Bits() / 2 ** 53,
  // Effect asks for any safe integer, of either sign.
  nextIntUnsafe: () => (next53Bits() % 2 === 0 ? next53Bits() : -next53Bits())
})
