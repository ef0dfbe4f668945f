/**
 * Secrets at rest: AES-256-GCM with a random nonce, bound to their owner, so that a value moved to another row or org does not open. A
 * value names its key: the newest seals, all given ones open, and `posthaste rekey` seals old values anew.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto"
import { Redacted } from "effect"

export type SealingKey = Redacted.Redacted<Uint8Array>

const VERSION = 2
const KEY_ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16

const keyIdOf = (key: SealingKey): Buffer =>
  createHmac("sha256", Redacted.value(key)).update("posthaste key id").digest().subarray(0, KEY_ID_BYTES)

interface Sealing {
  readonly seal: (secret: Redacted.Redacted, belongsTo: string) => Buffer
  /** Throws when the value was changed, moved, or sealed with a key that is not given. */
  readonly open: (sealed: Buffer, belongsTo: string) => Redacted.Redacted
  readonly isNewest: (sealed: Buffer) => boolean
}

export const sealing = (newest: SealingKey, older: ReadonlyArray<SealingKey> = []): Sealing => {
  const known = [newest, ...older].map((key) => ({ key, id: keyIdOf(key) }))
  const id = known[0]!.id

  return {
    seal: (secret, belongsTo) => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv("aes-256-gcm", Redacted.value(newest), nonce).setAAD(Buffer.from(belongsTo))
      const text = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
      return Buffer.concat([Buffer.from([VERSION]), id, nonce, cipher.getAuthTag(), text])
    },
    open: (sealed, belongsTo) => {
      if (sealed[0] !== VERSION) {
        throw new Error(`a secret was sealed in form ${sealed[0]}, which this release can't open`)
      }
      const named = sealed.subarray(1, 1 + KEY_ID_BYTES)
      const found = known.find((one) => one.id.equals(named))
      if (found === undefined) throw new Error("a secret was sealed with an encryption key that is not given")
      return opened(found.key, sealed.subarray(1 + KEY_ID_BYTES), belongsTo)
    },
    isNewest: (sealed) => sealed[0] === VERSION && sealed.subarray(1, 1 + KEY_ID_BYTES).equals(id)
  }
}

const opened = (key: SealingKey, sealed: Buffer, belongsTo: string): Redacted.Redacted => {
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv("aes-256-gcm", Redacted.value(key), sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(belongsTo))
    .setAuthTag(tag)
  const text = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
  return Redacted.make(text.toString("utf8"))
}
