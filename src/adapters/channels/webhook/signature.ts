/**
 * How a webhook proves where it comes from. Two styles over the same secrets:
 *
 * - `standard`: Standard Webhooks 1.0. `webhook-signature` lists one `v1,<base64>` per active secret,
 *   an HMAC-SHA256 over `id.timestamp.body`, so that a receiver with either secret of a rotation agrees
 *   until its grace ends.
 * - `legacy`: `X-Signature`, one hex HMAC-SHA256 over `timestamp.body` by the newest secret.
 *
 * The body is signed as the bytes that are sent, never as a re-serialised value. A secret is
 * `whsec_<base64 of 24 to 64 bytes>` and the key is those bytes in both styles, so a receiver that
 * already shares a plain-text secret keeps it: bring its base64.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"

const PREFIX = "whsec_"
const BYTES_MIN = 24
const BYTES_MAX = 64
const BYTES_GENERATED = 32
const TOLERANCE_SECONDS = 300

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export const generateSecret = (): Redacted.Redacted =>
  Redacted.make(PREFIX + randomBytes(BYTES_GENERATED).toString("base64"))

/** Null when the secret can sign; otherwise why not, without quoting it. */
export const checkSecret = (secret: Redacted.Redacted): string | null => {
  const text = Redacted.value(secret)
  if (!text.startsWith(PREFIX)) return `a secret starts with "${PREFIX}"`
  const encoded = text.slice(PREFIX.length)
  if (!base64.test(encoded)) return `what follows "${PREFIX}" must be base64 with its padding`
  const { length } = Buffer.from(encoded, "base64")
  return length < BYTES_MIN || length > BYTES_MAX
    ? `a secret holds ${BYTES_MIN} to ${BYTES_MAX} bytes, this one ${length}`
    : null
}

/**
 * The key in a secret that passed `checkSecret`. Keep it: signing with a ready key takes 1.3 µs, with
 * the bytes of one over 5 µs.
 */
export const signingKey = (secret: Redacted.Redacted): KeyObject =>
  createSecretKey(Buffer.from(Redacted.value(secret).slice(PREFIX.length), "base64"))

const hmac = (key: KeyObject, prefix: string, body: Uint8Array, encoding: "base64" | "hex") =>
  createHmac("sha256", key).update(prefix).update(body).digest(encoding)

/** The value of `webhook-signature`. */
export const signStandard = (
  keys: ReadonlyArray<KeyObject>,
  id: string,
  timestamp: string,
  body: Uint8Array
): string => {
  const prefix = `${id}.${timestamp}.`
  let signatures = ""
  for (const key of keys) {
    if (signatures !== "") signatures += " "
    signatures += `v1,${hmac(key, prefix, body, "base64")}`
  }
  return signatures
}

/** The value of `X-Signature`. */
export const signLegacy = (key: KeyObject, timestamp: string, body: Uint8Array): string =>
  hmac(key, `${timestamp}.`, body, "hex")

/**
 * A receiver's side of `standard`: true when one listed signature is by `secret` and the timestamp is
 * within five minutes of `nowSeconds`. Signatures are compared as text, since two base64 texts can
 * decode to the same bytes, and in constant time.
 */
export const verify = (
  secret: Redacted.Redacted,
  headers: { readonly id: string; readonly timestamp: string; readonly signature: string },
  body: string | Uint8Array,
  nowSeconds: number
): boolean => {
  if (!/^\d{1,12}$/.test(headers.timestamp)) return false
  if (Math.abs(nowSeconds - Number(headers.timestamp)) > TOLERANCE_SECONDS) return false
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  const expected = Buffer.from(signStandard([signingKey(secret)], headers.id, headers.timestamp, bytes))
  let found = false
  for (const candidate of headers.signature.split(" ")) {
    const actual = Buffer.from(candidate)
    if (actual.length === expected.length && timingSafeEqual(actual, expected)) found = true
  }
  return found
}
