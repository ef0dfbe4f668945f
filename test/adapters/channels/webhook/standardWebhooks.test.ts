/**
 * Requests as receivers see them, verified by what receivers use: the official library of Standard Webhooks, and Node's
 * own Ed25519. Nothing here comes from the code that signs.
 */
import { createPublicKey, verify } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import type { EndpointSettings } from "../../../../src/adapters/channels/webhook/settings.ts"
import { generateSecret, publicKeyOf } from "../../../../src/adapters/channels/webhook/signature.ts"
import { answer, type Received, receiver } from "../net/receiver.ts"
import { channelKnowing, endpointAt, messageTo } from "./endpoint.ts"

const bodies = ['{"a":1}', '{"price":1.10,"id":12345678901234567890,"name":"Åse 🐎"}', `"${"x".repeat(100_000)}"`]

interface Captured {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly body: Buffer
}

/** What a receiver gets of an endpoint with these secrets, the newest first. */
const captured = Effect.fnUntraced(function* (
  signature: EndpointSettings["signature"],
  [secret, ...earlier]: ReadonlyArray<Redacted.Redacted>
) {
  const far = yield* receiver({ request: (socket) => answer(socket, 200) })
  const until = DateTime.add(yield* DateTime.now, { hours: 1 })
  const destination = endpointAt(far.url, { signature })
  const channel = yield* channelKnowing({
    destination,
    secrets: { secret: secret! },
    previousSecrets: earlier.map((each) => ({ name: "secret", secret: each, until }))
  })
  yield* Effect.forEach(bodies, (body) => channel.send(messageTo(destination, { body })))
  return far.requests.map(
    ({ headers, body }: Received): Captured => ({
      id: headers.get("webhook-id")!,
      timestamp: headers.get("webhook-timestamp")!,
      signature: headers.get("webhook-signature")!,
      body
    })
  )
})

/** The official library. It judges the age of a timestamp by the clock, so it needs requests that were just made. */
const isByLibrary = (secret: Redacted.Redacted, { id, timestamp, signature, body }: Captured): boolean => {
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }
  try {
    new Webhook(Redacted.value(secret)).verify(body, headers)
    return true
  } catch {
    return false
  }
}

/** Written from the specification. */
const isByPublicKey = (publicKey: string, { id, timestamp, signature, body }: Captured): boolean => {
  const x = Buffer.from(publicKey.replace("whpk_", ""), "base64").toString("base64url")
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  return signature
    .split(" ")
    .filter((each) => each.startsWith("v1a,"))
    .some((each) => {
      const bytes = Buffer.from(each.slice(4), "base64")
      return bytes.toString("base64") === each.slice(4) && verify(null, content, key, bytes)
    })
}

const flipped = (bytes: Buffer, at: number) => {
  const copy = Buffer.from(bytes)
  copy[at]! ^= 1
  return copy
}

/** The request with each of its bytes changed in turn. */
const everyFlip = (request: Captured): ReadonlyArray<Captured> => [
  ...[...request.body.keys()].map((at) => ({ ...request, body: flipped(request.body, at) })),
  ...(["id", "timestamp", "signature"] as const).flatMap((part) =>
    [...Buffer.from(request[part]).keys()].map((at) => ({
      ...request,
      [part]: flipped(Buffer.from(request[part]), at).toString("latin1")
    }))
  )
]

describe("a request by HMAC", () => {
  it.live("is verified by the official library with any secret of a rotation, and by none with a stranger's", () =>
    Effect.gen(function* () {
      const [newer, older, stranger] = [generateSecret(), generateSecret(), generateSecret()]
      for (const request of yield* captured("standard", [newer, older])) {
        const { signature } = request
        expect([newer, older, stranger].map((each) => isByLibrary(each, request))).toEqual([true, true, false])
        expect(signature.split(" ").every((each) => each.startsWith("v1,"))).toBe(true)
      }
    })
  )

  it.live("is refused by the official library when any byte of it is changed", () =>
    Effect.gen(function* () {
      const secret = generateSecret()
      const [small, numbers] = yield* captured("standard", [secret])
      for (const request of [small!, numbers!]) {
        expect(everyFlip(request).filter((changed) => isByLibrary(secret, changed))).toEqual([])
      }
    })
  )
})

describe("a request by Ed25519", () => {
  it.live("is verified by Node with any public key of a rotation, and by none with a stranger's", () =>
    Effect.gen(function* () {
      const [newer, older, stranger] = [0, 1, 2].map(() => generateSecret("ed25519"))
      for (const request of yield* captured("ed25519", [newer!, older!])) {
        const keys = [newer, older, stranger].map((each) => publicKeyOf(each!)!)
        expect(keys.map((key) => isByPublicKey(key, request))).toEqual([true, true, false])
        expect(request.signature.split(" ").map((each) => each.slice(0, 4))).toEqual(["v1a,", "v1a,"])
      }
    })
  )

  it.live("is refused when any byte of it is changed", () =>
    Effect.gen(function* () {
      const secret = generateSecret("ed25519")
      const [small, numbers] = yield* captured("ed25519", [secret])
      for (const request of [small!, numbers!]) {
        const accepted = everyFlip(request).filter((changed) => isByPublicKey(publicKeyOf(secret)!, changed))
        expect(accepted).toEqual([])
      }
    })
  )

  it.live("is signed by a private key that was brought along, as its seed or as a pair", () =>
    Effect.gen(function* () {
      const pair = Redacted.make(
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
      )
      const publicKey = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
      const bytes = Buffer.from(Redacted.value(pair).slice(5), "base64")
      const seed = Redacted.make(`whsk_${bytes.subarray(0, 32).toString("base64")}`)
      for (const secret of [pair, seed]) {
        expect(publicKeyOf(secret)).toBe(publicKey)
        const requests = yield* captured("ed25519", [secret])
        expect(requests.map((request) => isByPublicKey(publicKey, request))).toEqual(bodies.map(() => true))
      }
    })
  )
})
