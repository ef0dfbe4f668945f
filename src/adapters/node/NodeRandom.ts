/**
 * Effect's random numbers from the operating system, so that message ids can't be guessed. Drawn in blocks: 8 bytes at
 * a time cost more than the id.
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
  // Effect wants safe integers of either sign.
  nextIntUnsafe: () => (next53Bits() % 2 === 0 ? next53Bits() : -next53Bits())
})
