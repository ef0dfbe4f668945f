/**
 * Secrets at rest: AES-256-GCM with a random nonce. What a secret belongs to is bound into it, so a sealed
 * value moved to another row or org does not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Redacted } from "effect"

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

export const sealing = (key: Redacted.Redacted<Uint8Array>) => ({
  seal: (secret: Redacted.Redacted, belongsTo: string): Buffer => {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv("aes-256-gcm", Redacted.value(key), nonce).setAAD(Buffer.from(belongsTo))
    const text = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
    return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), text])
  },
  /** Throws when the value was changed, moved, or sealed with another key: none of these is a state to work in. */
  open: (sealed: Buffer, belongsTo: string): Redacted.Redacted => {
    if (sealed[0] !== VERSION)
      throw new Error(`a secret was sealed in form ${sealed[0]}, which this release can't open`)
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
    const tag = sealed.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES)
    const decipher = createDecipheriv("aes-256-gcm", Redacted.value(key), nonce)
      .setAAD(Buffer.from(belongsTo))
      .setAuthTag(tag)
    const text = Buffer.concat([decipher.update(sealed.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()])
    return Redacted.make(text.toString("utf8"))
  }
})
