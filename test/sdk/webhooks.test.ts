/** `posthaste/webhooks` believes what Posthaste signs, and nothing else. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import { Redacted } from "effect"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  MissingHeaderError,
  PayloadError,
  SignatureError,
  TimestampError,
  verify,
  WebhookSetupError,
  WebhookVerificationError
} from "../../sdk/src/webhooks.ts"
import {
  generateSecret,
  publicKeyOf,
  signEd25519,
  signingKey,
  signStandard
} from "../../src/adapters/channels/webhook/signature.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
const timestamp = "1614265330"
const body = '{"test": 2432232314}'

const headersOf = (signature: string, changed: Record<string, string> = {}) => ({
  "webhook-id": id,
  "webhook-timestamp": timestamp,
  "webhook-signature": signature,
  ...changed
})

/** As the service signs. */
const signedBy = (key: string, bytes: string | Uint8Array, of = { id, timestamp }) =>
  signStandard([signingKey(Redacted.make(key))], of.id, of.timestamp, Buffer.from(bytes))

const other = `whsec_${Buffer.alloc(24, 7).toString("base64")}`

beforeEach(() => {
  vi.useFakeTimers({ now: Number(timestamp) * 1000, toFake: ["Date"] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe("a signed webhook", () => {
  it("is the example of Standard Webhooks", async () => {
    const headers = headersOf("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    expect(await verify(headers, body, secret)).toEqual({
      id,
      timestamp: new Date(Number(timestamp) * 1000),
      payload: { test: 2432232314 }
    })
  })

  it("may have its headers in any form that servers have", async () => {
    const plain = headersOf(signedBy(secret, body))
    const upper = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), value]))
    const forms = [plain, upper, new Headers(plain), new Map(Object.entries(plain)), Object.entries(plain)]
    for (const headers of forms as ReadonlyArray<Record<string, string>>) {
      expect((await verify(headers, body, secret)).id).toBe(id)
    }
  })

  it("may have its body as text, bytes, a view of more bytes, or a buffer", async () => {
    const text = '{"é":"😀\\u0000"}'
    const headers = headersOf(signedBy(secret, text))
    const bytes = new TextEncoder().encode(text)
    const view = Buffer.concat([Buffer.from("before"), bytes, Buffer.from("after")]).subarray(6, 6 + bytes.length)
    const forms = [text, bytes, Buffer.from(bytes), view, bytes.buffer]
    for (const form of forms) expect((await verify(headers, form, secret)).payload).toEqual({ é: "😀\0" })
  })

  it.each([0, 299, 300, -299, -300])("is believed %s seconds after it was signed", async (seconds) => {
    vi.setSystemTime((Number(timestamp) + seconds) * 1000)
    await verify(headersOf(signedBy(secret, body)), body, secret)
  })

  it.each([301, -301, 86_400])("is not believed %s seconds after it was signed", async (seconds) => {
    vi.setSystemTime((Number(timestamp) + seconds) * 1000)
    await expect(verify(headersOf(signedBy(secret, body)), body, secret)).rejects.toThrow(TimestampError)
  })

  it("is believed as long as the receiver says", async () => {
    vi.setSystemTime((Number(timestamp) + 10) * 1000)
    const headers = headersOf(signedBy(secret, body))
    await verify(headers, body, secret, { toleranceSeconds: 10 })
    await expect(verify(headers, body, secret, { toleranceSeconds: 9 })).rejects.toThrow(TimestampError)
  })
})

describe("while a secret is rotated", () => {
  it("one of several signatures is enough", async () => {
    const both = `${signedBy(other, body)} ${signedBy(secret, body)}`
    await verify(headersOf(both), body, secret)
    await verify(headersOf(both), body, other)
  })

  it("one of several secrets is enough", async () => {
    await verify(headersOf(signedBy(secret, body)), body, [other, secret])
  })

  it("a secret that is not in use any more is not", async () => {
    await expect(verify(headersOf(signedBy(secret, body)), body, other)).rejects.toThrow(SignatureError)
  })
})

describe("a public key", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519")
  const raw = (key: KeyObject) => key.export({ format: "der", type: "spki" }).subarray(-32)
  const whpk = `whpk_${raw(publicKey).toString("base64")}`
  const signature = (text: string) =>
    `v1a,${sign(null, Buffer.from(`${id}.${timestamp}.${text}`), privateKey).toString("base64")}`

  it("of an endpoint verifies what the service signs for it", async () => {
    const secret = generateSecret("ed25519")
    const signatures = signEd25519([signingKey(secret)], id, timestamp, Buffer.from(body))
    expect(signatures).toMatch(/^v1a,/)
    expect((await verify(headersOf(signatures), body, publicKeyOf(secret)!)).id).toBe(id)
  })

  it("verifies what its private key signed", async () => {
    expect((await verify(headersOf(signature(body)), body, whpk)).id).toBe(id)
    await verify(headersOf(`v1,AAAA ${signature(body)}`), body, [secret, whpk])
  })

  it("verifies nothing else", async () => {
    await expect(verify(headersOf(signature(body)), `${body} `, whpk)).rejects.toThrow(SignatureError)
    const strange = `whpk_${raw(generateKeyPairSync("ed25519").publicKey).toString("base64")}`
    await expect(verify(headersOf(signature(body)), body, strange)).rejects.toThrow(SignatureError)
  })

  it("is never taken for a secret: who knows it can't sign with it", async () => {
    const asSecret = `whsec_${whpk.slice("whpk_".length)}`
    await expect(verify(headersOf(signedBy(asSecret, body)), body, whpk)).rejects.toThrow(SignatureError)
  })
})

describe("a request that was changed", () => {
  const whole = Buffer.from(body)

  it("is not believed, whichever byte of the body it is", async () => {
    const headers = headersOf(signedBy(secret, whole))
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, difference) => {
        const changed = Buffer.from(whole)
        changed[at] = changed[at]! ^ difference
        await expect(verify(headers, changed, secret)).rejects.toThrow(SignatureError)
      })
    )
  })

  it("is not believed with another id or another time", async () => {
    const signature = signedBy(secret, body)
    await expect(verify(headersOf(signature, { "webhook-id": "msg_other" }), body, secret)).rejects.toThrow(
      SignatureError
    )
    const later = { "webhook-timestamp": String(Number(timestamp) + 1) }
    await expect(verify(headersOf(signature, later), body, secret)).rejects.toThrow(SignatureError)
  })

  it("can't move bytes between id, time and body", async () => {
    const signature = signedBy(secret, `${timestamp}.${body}`, { id: "a", timestamp })
    const moved = headersOf(signature, { "webhook-id": `a.${timestamp}` })
    await expect(verify(moved, body, secret)).rejects.toThrow(WebhookVerificationError)
  })

  const good = signedBy(secret, body)
  it.each([
    ["nothing", ""],
    ["no version", good.slice(3)],
    ["a version only", "v1"],
    ["a version and a comma", "v1,"],
    ["the beginning of a good one", good.slice(0, 20)],
    ["a good one and more", `${good.slice(0, -1)}AA=`],
    ["another version", good.replace("v1,", "v2,")],
    ["the version of the other algorithm", good.replace("v1,", "v1a,")],
    ["tabs between", `v1,AAAA\t${good}`],
    ["commas between", `v1,AAAA,${good}`],
    ["no base64", "v1,€€€€"],
    ["ten thousand of them before", `${"v1,AAAA ".repeat(10_000)}${good}`]
  ])("is not believed when its signature is %s", async (_, signature) => {
    await expect(verify(headersOf(signature), body, secret)).rejects.toThrow(WebhookVerificationError)
  })

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("is not believed without %s", async (name) => {
    const { [name]: _, ...rest } = headersOf(good) as Record<string, string>
    await expect(verify(rest, body, secret)).rejects.toThrow(MissingHeaderError)
    await expect(verify({ ...rest, [name]: "" }, body, secret)).rejects.toThrow(MissingHeaderError)
    await expect(verify({ ...rest, [name]: ["a", "b"] }, body, secret)).rejects.toThrow(MissingHeaderError)
  })

  it.each(["now", "-1", "1e9", "1614265330.5", " 1614265330", "16142653300000000", "Infinity"])(
    "is not believed when its time is %s",
    async (when) => {
      const headers = headersOf(signedBy(secret, body, { id, timestamp: when }), { "webhook-timestamp": when })
      await expect(verify(headers, body, secret)).rejects.toThrow(MissingHeaderError)
    }
  )

  it("that is genuine and no JSON says so", async () => {
    await expect(verify(headersOf(signedBy(secret, "{")), "{", secret)).rejects.toThrow(PayloadError)
  })
})

describe("a receiver that is set up wrong", () => {
  it.each(["", "whsec_", "whsec_AAAA", "whsec_€€€€", secret.slice(6), `whpk_${secret.slice(6)}`, "whsk_AAAA"])(
    "learns that the key %s is none",
    async (key) => {
      await expect(verify(headersOf("v1,AAAA"), body, key)).rejects.toThrow(WebhookSetupError)
    }
  )

  it("learns that it needs a key", async () => {
    await expect(verify(headersOf("v1,AAAA"), body, [])).rejects.toThrow(WebhookSetupError)
  })

  it("learns that the body was parsed already", async () => {
    const parsed = { test: 1 } as unknown as string
    await expect(verify(headersOf("v1,AAAA"), parsed, secret)).rejects.toThrow("raw body")
  })
})
