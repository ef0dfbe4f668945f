import { createHmac } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import {
  checkSecret,
  generateSecret,
  publicKeyOf,
  signingKey,
  signLegacy,
  signStandard,
  verify
} from "../../../../src/adapters/channels/webhook/signature.ts"

const golden = {
  secret: Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
  headers: {
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: "1614265330",
    signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
  },
  body: '{"test": 2432232314}',
  now: 1614265330
}
const secretOf = (bytes: Uint8Array) => Redacted.make(`whsec_${Buffer.from(bytes).toString("base64")}`)
const anySecret = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(secretOf)

describe("a standard signature", () => {
  it("is the one the specification's own example has", () => {
    const signature = signStandard(
      [signingKey(golden.secret)],
      golden.headers.id,
      golden.headers.timestamp,
      Buffer.from(golden.body)
    )
    expect(signature).toBe(golden.headers.signature)
    expect(verify(golden.secret, golden.headers, golden.body, golden.now)).toBe(true)
  })

  it("lists one signature per secret, and each secret's holder agrees", () => {
    const [older, newer, stranger] = [generateSecret(), generateSecret(), generateSecret()]
    const body = Buffer.from("{}")
    const signature = signStandard([newer, older].map(signingKey), "id", "1000", body)
    expect(signature.split(" ")).toHaveLength(2)
    const agrees = (secret: Redacted.Redacted) => verify(secret, { id: "id", timestamp: "1000", signature }, body, 1000)
    expect([newer, older, stranger].map(agrees)).toEqual([true, true, false])
  })

  it("covers the bytes of any body: empty, binary, emoji, half a surrogate pair", () => {
    fc.assert(
      fc.property(
        anySecret,
        fc.oneof(fc.uint8Array(), fc.string({ unit: "binary" }).map(Buffer.from)),
        (secret, body) => {
          const signature = signStandard([signingKey(secret)], "id", "1000", body)
          expect(verify(secret, { id: "id", timestamp: "1000", signature }, body, 1000)).toBe(true)
        }
      )
    )
    const halfPair = Buffer.from("a\ud83d")
    const signature = signStandard([signingKey(golden.secret)], "id", "1000", halfPair)
    expect(verify(golden.secret, { id: "id", timestamp: "1000", signature }, halfPair, 1000)).toBe(true)
  })

  it("fails when any one byte of id, timestamp, body or signature changes", () => {
    const flip = (text: string, at: number, by: number) => {
      const bytes = Buffer.from(text)
      bytes[at % bytes.length]! ^= by
      return bytes.toString("latin1")
    }
    fc.assert(
      fc.property(
        fc.constantFrom("id", "timestamp", "signature", "body"),
        fc.nat(),
        fc.integer({ min: 1, max: 127 }),
        (part, at, by) => {
          const headers =
            part === "body" ? golden.headers : { ...golden.headers, [part]: flip(golden.headers[part], at, by) }
          const body = part === "body" ? flip(golden.body, at, by) : golden.body
          expect(verify(golden.secret, headers, body, golden.now)).toBe(false)
        }
      ),
      { numRuns: 500 }
    )
  })

  it.each([
    "",
    "v1,",
    "v1",
    "v",
    " ",
    golden.headers.signature.slice(0, -1),
    golden.headers.signature.replace("v1,", "v2,"),
    golden.headers.signature.replace("v1,", "v1a,"),
    golden.headers.signature.slice(3),
    `\t${golden.headers.signature}`,
    // The same 32 bytes in another spelling.
    golden.headers.signature.replace("OE=", "OF="),
    `v1,${"A".repeat(10_000)}`
  ])("is not %j", (signature) =>
    expect(verify(golden.secret, { ...golden.headers, signature }, golden.body, golden.now)).toBe(false)
  )

  it("is found anywhere in a long list", () => {
    const signature = `${"v1,AAAA ".repeat(1000)}${golden.headers.signature}`
    expect(verify(golden.secret, { ...golden.headers, signature }, golden.body, golden.now)).toBe(true)
  })

  it.each([
    [-301, false],
    [-300, true],
    [-299, true],
    [299, true],
    [300, true],
    [301, false]
  ])("made %d s from now is accepted: %j", (offset, accepted) =>
    expect(verify(golden.secret, golden.headers, golden.body, golden.now + offset)).toBe(accepted)
  )

  it.each(["", "abc", "1614265330.0", "-1614265330", " 1614265330", "1e9"])("has no timestamp like %j", (timestamp) =>
    expect(verify(golden.secret, { ...golden.headers, timestamp }, golden.body, golden.now)).toBe(false)
  )
})

describe("a legacy signature", () => {
  it("is the hex HMAC-SHA256 of `timestamp.body` by the secret's bytes", () => {
    const bytes = Buffer.from("a secret from before, with 24 bytes or more")
    const body = Buffer.from('{"name":"Åse 🐎"}')
    expect(signLegacy(signingKey(secretOf(bytes)), "1700000000", body)).toBe(
      createHmac("sha256", bytes).update('1700000000.{"name":"Åse 🐎"}').digest("hex")
    )
  })
})

describe("a secret", () => {
  it("that was generated is fine, holds 32 bytes and is never the same", () => {
    const secrets = Array.from({ length: 50 }, () => generateSecret())
    expect(secrets.map((secret) => checkSecret(secret))).toEqual(secrets.map(() => null))
    expect(new Set(secrets.map(Redacted.value)).size).toBe(50)
    expect(Buffer.from(Redacted.value(secrets[0]!).slice(6), "base64")).toHaveLength(32)
  })

  it("that is a private key holds a seed, alone or with its public key behind it", () => {
    const [one, other] = [generateSecret("ed25519"), generateSecret("ed25519")]
    const bytesOf = (secret: Redacted.Redacted) => Buffer.from(Redacted.value(secret).slice(5), "base64")
    const check = (...parts: ReadonlyArray<Uint8Array>) =>
      checkSecret(Redacted.make(`whsk_${Buffer.concat(parts).toString("base64")}`), "ed25519")
    expect(checkSecret(one, "ed25519")).toBeNull()
    expect(check(bytesOf(one).subarray(0, 32))).toBeNull()
    expect(check(bytesOf(one).subarray(0, 31))).toContain("this one 31")
    expect(check(bytesOf(one).subarray(0, 32), bytesOf(other).subarray(32))).toContain("not its public key")
    expect(checkSecret(Redacted.make("whsk_not base64"), "ed25519")).toContain("must be base64")
    expect(publicKeyOf(one)).toBe(`whpk_${bytesOf(one).subarray(32).toString("base64")}`)
    expect(publicKeyOf(generateSecret())).toBeNull()
  })

  it("may be any 24 to 64 bytes", () => {
    fc.assert(
      fc.property(anySecret, (secret) => {
        expect(checkSecret(secret)).toBeNull()
      })
    )
    for (const length of [0, 1, 23, 65, 1000])
      expect(checkSecret(secretOf(new Uint8Array(length)))).toContain("24 to 64")
  })

  it.each([
    ["", "starts with"],
    ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "starts with"],
    ["WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "starts with"],
    ["whsec_", "24 to 64"],
    ["whsec_not base64 at all, not base64 at all", "base64"],
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "base64"],
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_", "base64"],
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "base64"]
  ])("like %j is refused with the reason, and without being quoted", (text, reason) => {
    const answer = checkSecret(Redacted.make(text))
    expect(answer).toContain(reason)
    if (text.length > 6) expect(answer).not.toContain(text)
  })
})
