/**
 * `posthaste/webhooks`: is this request from Posthaste, and unchanged?
 *
 * Posthaste signs as Standard Webhooks describes: HMAC-SHA256 with the endpoint's secret (`whsec_…`), or Ed25519, for which
 * the receiver has the endpoint's public key (`whpk_…`). The signature is over the bytes of the body: give `verify` the body
 * as it arrived, before anything parsed it. Only Web Crypto is used, which compares in constant time; so this runs in Node,
 * Bun, Deno, edge workers and browsers.
 *
 * A message can arrive more than once: `posthaste/inbox` handles it once.
 */
import { PosthasteError } from "./errors.ts"
import { webCrypto } from "./webCrypto.ts"

/** Headers as any server has them: `Headers`, Node's object, or entries. The case of names does not matter. */
export type WebhookHeaders =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  | Iterable<readonly [string, string]>

export interface VerifyOptions {
  /** How far the time of the request may be from ours, in seconds, in the past and in the future; 300 by default. */
  readonly toleranceSeconds?: number | undefined
}

/** A request that Posthaste signed. */
export interface VerifiedWebhook<Payload = unknown> {
  /** The id of the message: the same in every attempt and every replay. */
  readonly id: string
  /** When this request was signed. */
  readonly timestamp: Date
  /** The body, parsed. */
  readonly payload: Payload
}

/** The request is not to be believed; answer 401. */
export class WebhookVerificationError extends PosthasteError {
  override readonly name: string = "WebhookVerificationError"
}
/** A header that every signed request has is not there, or can't be read. */
export class MissingHeaderError extends WebhookVerificationError {
  override readonly name = "MissingHeaderError"
}
/** The request was signed too long ago, or in the future: it is an old one sent again, or a clock is wrong. */
export class TimestampError extends WebhookVerificationError {
  override readonly name = "TimestampError"
}
/** No signature of the request was made with one of the secrets over this body. */
export class SignatureError extends WebhookVerificationError {
  override readonly name = "SignatureError"
}
/** The request is genuine, but its body is not JSON. */
export class PayloadError extends WebhookVerificationError {
  override readonly name = "PayloadError"
}
/** The receiver is not set up right: a key has the wrong form, or the body was parsed before it was verified. */
export class WebhookSetupError extends PosthasteError {
  override readonly name = "WebhookSetupError"
}

/** More than any rotation needs; a stranger's list costs no more than this. */
const SIGNATURES_MAX = 16

/**
 * Answers the webhook when one of its signatures was made with one of the keys, and rejects with a named error otherwise.
 * While a secret is being rotated, give both: `verify(headers, body, [next, previous])`.
 */
export const verify = async <Payload = unknown>(
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
  keys: string | ReadonlyArray<string>,
  { toleranceSeconds = 300 }: VerifyOptions = {}
): Promise<VerifiedWebhook<Payload>> => {
  const bytes = bytesOf(body)
  const verifiers = (typeof keys === "string" ? [keys] : keys).map(keyOf)
  if (verifiers.length === 0) throw new WebhookSetupError("verify needs at least one secret or public key.")
  const id = headerOf(headers, "webhook-id")
  const timestamp = headerOf(headers, "webhook-timestamp")
  const signatures = headerOf(headers, "webhook-signature")
  if (!/^\d{1,12}$/.test(timestamp)) throw new MissingHeaderError("webhook-timestamp must be a number of seconds.")
  // A full stop in the id would let the same signed bytes be read as another id, time and body.
  if (id.includes(".")) throw new MissingHeaderError("webhook-id must not contain a full stop.")
  const age = Date.now() / 1000 - Number(timestamp)
  if (!(Math.abs(age) <= toleranceSeconds)) {
    const [seconds, when] = [Math.round(Math.abs(age)), age > 0 ? "ago" : "in the future"]
    throw new TimestampError(`It was signed ${seconds} s ${when}; at most ${toleranceSeconds} s are allowed.`)
  }
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  if (!(await isSigned(signed, signatures, verifiers))) {
    throw new SignatureError("No signature fits: the body was changed, or it was signed with another key.")
  }
  return { id, timestamp: new Date(Number(timestamp) * 1000), payload: parse<Payload>(bytes) }
}

type Scheme = "v1" | "v1a"
interface Key {
  readonly scheme: Scheme
  readonly bytes: Uint8Array<ArrayBuffer>
}

const isSigned = async (signed: Uint8Array<ArrayBuffer>, signatures: string, keys: ReadonlyArray<Key>) => {
  const { subtle } = await webCrypto()
  const given = signatures
    .split(" ")
    .slice(0, SIGNATURES_MAX)
    .flatMap((text) => signatureOf(text) ?? [])
  for (const { scheme, bytes } of keys) {
    const algorithm = scheme === "v1" ? { name: "HMAC", hash: "SHA-256" } : { name: "Ed25519" }
    const key = await subtle.importKey("raw", bytes, algorithm, false, ["verify"])
    for (const signature of given) {
      if (signature.scheme !== scheme) continue
      if (await subtle.verify(algorithm.name, key, signature.bytes, signed)) return true
    }
  }
  return false
}

const LENGTH: Record<Scheme, number> = { v1: 32, v1a: 64 }

const signatureOf = (text: string): Key | null => {
  const comma = text.indexOf(",")
  const scheme = text.slice(0, Math.max(comma, 0))
  if (scheme !== "v1" && scheme !== "v1a") return null
  const bytes = fromBase64(text.slice(comma + 1))
  // Compared as a whole or not at all: a short signature is never a prefix that fits.
  return bytes?.length === LENGTH[scheme] ? { scheme, bytes } : null
}

const keyOf = (text: string): Key => {
  const bytes = fromBase64(text.slice(text.indexOf("_") + 1))
  if (text.startsWith("whsec_") && bytes !== null && bytes.length >= 24) return { scheme: "v1", bytes }
  if (text.startsWith("whpk_") && bytes?.length === 32) return { scheme: "v1a", bytes }
  throw new WebhookSetupError("A key must be whsec_ and the secret, or whpk_ and the public key, in base64.")
}

const fromBase64 = (text: string): Uint8Array<ArrayBuffer> | null => {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}

const headerOf = (headers: WebhookHeaders, name: string): string => {
  const value = lookUp(headers, name)
  if (typeof value !== "string" || value === "") throw new MissingHeaderError(`The header ${name} is missing.`)
  return value
}

const lookUp = (headers: WebhookHeaders, name: string): unknown => {
  if (typeof (headers as Headers).get === "function") return (headers as Headers).get(name)
  const entries = Symbol.iterator in headers ? [...(headers as Iterable<[string, string]>)] : Object.entries(headers)
  return entries.find(([key]) => key.toLowerCase() === name)?.[1]
}

const bytesOf = (body: string | Uint8Array | ArrayBuffer): Uint8Array => {
  if (typeof body === "string") return new TextEncoder().encode(body)
  if (body instanceof Uint8Array) return body
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body)
  throw new WebhookSetupError("verify needs the raw body, a text or bytes, from before anything parsed it.")
}

const concat = (head: Uint8Array, tail: Uint8Array) => {
  const whole = new Uint8Array(head.length + tail.length)
  whole.set(head)
  whole.set(tail, head.length)
  return whole
}

const parse = <Payload>(bytes: Uint8Array): Payload => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Payload
  } catch (cause) {
    throw new PayloadError("The body is not JSON.", { cause })
  }
}
