/** No secret of a destination is left in what its far side says, in whatever field and however it is written there. */
import { generateKeyPairSync } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Redacted } from "effect"
import fc from "fast-check"
import { masked, maskedJson, maskOf } from "../../../src/application/destinations/masking.ts"
import type { AnyChannel, Reply } from "../../../src/application/ports/Channels.ts"
import type { OpenDestination } from "../../../src/application/ports/Destinations.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { amqp, destinationOf, http, senderKnowing, webhook, whatsapp } from "../../contracts/destinations/samples.ts"
import { newLane } from "../../contracts/sample.ts"

const org = OrgId.make("acme")

const openOf = (
  channel: AnyChannel,
  settings: object,
  secrets: Readonly<Record<string, string>> = {},
  previous: Readonly<Record<string, string>> = {}
): OpenDestination => ({
  destination: destinationOf(channel, org, settings),
  secrets: Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, Redacted.make(value)])),
  previousSecrets: Object.entries(previous).map(([name, value]) => ({
    name,
    secret: Redacted.make(value),
    until: DateTime.makeUnsafe(0)
  }))
})

const url = "https://far.example/in"
const maskWith = (secret: string) => maskOf(http, openOf(http, { url }, { token: secret }))
const base64 = (text: string) => Buffer.from(text).toString("base64")

/** How an answer may write what it was sent. */
const ways: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  "in capitals": (text) => text.toUpperCase(),
  "as a bearer token": (text) => `Bearer ${text}`,
  "as JSON": (text) => JSON.stringify({ headers: { authorization: `Bearer ${text}` } }),
  "as JSON within JSON": (text) => JSON.stringify({ echo: JSON.stringify({ token: text }) }),
  "as JSON deep in JSON": (text) => [1, 2, 3, 4, 5].reduce((inner) => JSON.stringify({ inner }), text),
  "as Go writes JSON": (text) =>
    JSON.stringify([text]).replace(/[&<>]/g, (found) => `\\u00${found.charCodeAt(0).toString(16)}`),
  "as JSON, percent-encoded": (text) => encodeURIComponent(JSON.stringify([text])),
  "as JSON with escaped slashes": (text) => JSON.stringify([text]).replaceAll("/", "\\/"),
  "percent-encoded": encodeURIComponent,
  "as a form": (text) => new URLSearchParams({ token: text }).toString(),
  "in HTML": (text) =>
    `<b title="${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;")}">`,
  "in base64": base64,
  "as basic authentication": (text) => `Basic ${base64(`somebody:${text}`)}`,
  "in base64 of all headers": (text) => base64(`{"host":"x","authorization":"Bearer ${text}","a":1}`),
  "in base64 for URLs": (text) => Buffer.from(`?${text}?`).toString("base64url"),
  "in base64 with escaped slashes": (text) => JSON.stringify(base64(`??${text}`)).replaceAll("/", "\\/"),
  "in hex": (text) => Buffer.from(text).toString("hex")
}

/** All that gives the secret away, found without the code under test. */
const tellsOf = (secret: string): ReadonlyArray<string> => [
  secret.toLowerCase(),
  JSON.stringify(secret).slice(1, -1).toLowerCase(),
  encodeURIComponent(secret).toLowerCase(),
  Buffer.from(secret).toString("hex")
]

const printable = (minLength: number) =>
  fc.string({
    minLength,
    maxLength: 60,
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
  })

describe("a secret that an answer repeats", () => {
  it.each(Object.keys(ways))("is taken out %s", (way) => {
    fc.assert(
      fc.property(printable(8), fc.lorem(), (secret, around) => {
        const said = `${around} ${ways[way]!(secret)} ${around}`
        const kept = maskWith(secret)(said)
        expect(kept).toContain("***")
        for (const tell of tellsOf(secret)) expect(kept.toLowerCase()).not.toContain(tell)
        // Of what is encoded nothing is left that could be decoded to a part of it.
        for (const run of kept.match(/[A-Za-z0-9+/_-]{8,}/g) ?? []) {
          expect(Buffer.from(run, "base64").toString("latin1")).not.toContain(secret.slice(0, 6))
        }
        // What stood around it is as it was.
        expect(kept.startsWith(`${around} `) || around.toLowerCase().includes(secret.slice(0, 4).toLowerCase())).toBe(
          true
        )
      }),
      { numRuns: 60 }
    )
  })

  it("is found when it has four characters, and what is shorter is in everything", () => {
    expect(maskWith("gold")("the gold of fools")).toBe("the *** of fools")
    expect(maskWith("old")("the gold of fools")).toBe("the gold of fools")
  })

  it("counts when a text was cut within it", () => {
    const secret = "sk_live_0123456789abcdef"
    for (let kept = 4; kept < secret.length; kept++) {
      const cut = `${".".repeat(300)}${secret.slice(0, kept)}`
      expect(maskWith(secret)(cut)).toBe(`${".".repeat(300)}***`)
      expect(maskWith(secret)(`${".".repeat(300)}${base64(`x${secret}`).slice(0, 4 + kept)}`)).not.toContain("X2xp")
    }
    expect(maskWith(secret)(`${".".repeat(300)}sk_l!`)).toBe(`${".".repeat(300)}sk_l!`)
  })

  it("is found behind characters whose lower case is longer", () => {
    expect(maskWith("sk_live_1")("İİİİ sk_LIVE_1 İİ")).toBe("İİİİ *** İİ")
  })

  it("takes all of the base64 along that it lies in", () => {
    const said = base64('{"user":"shop","token":"sk_live_1","more":17}')
    expect(maskWith("sk_live_1")(`{"echo":"${said}"}, ${said.replaceAll("=", "")}`)).toBe('{"echo":"***"}, ***')
  })

  it("is found wherever it comes again, and leaves what is between", () => {
    expect(maskWith("sk_live_1")("sk_live_1,sk_live_1 and sk_live_1")).toBe("***,*** and ***")
  })

  it("leaves alone what holds none", () => {
    fc.assert(
      fc.property(fc.json(), (said) => {
        expect(maskWith("sk_live_0123456789abcdef")(said)).toBe(said)
      })
    )
  })
})

describe("an org that has many and long secrets", () => {
  /** The worst that is known: what is looked for begins, and ends, as the answer goes on and on. */
  const patterns = ["a", "ab", "aab", "abcabd", "/+"]
  const secretsOf = (pattern: string) =>
    Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [
        `s${n}`,
        `${n % 2 === 0 ? "b" : ""}${pattern.repeat(4_096)}`.slice(0, 4_095 - n) + (n % 3 === 0 ? "c" : "")
      ])
    )

  it.each(patterns)("pays for it with the length of its answers, and nobody else does: %s", (pattern) => {
    const open = openOf(http, { url }, secretsOf(pattern))
    const mask = maskOf(http, open)
    mask(pattern.repeat(4_096))
    const answer = pattern.repeat(65_536).slice(0, 65_536)
    const { user } = process.threadCpuUsage()
    const kept = mask(answer)
    // By the processor's time: how busy the machine is does not count.
    expect(process.threadCpuUsage({ user, system: 0 }).user / 1_000).toBeLessThan(500)
    expect(kept.length).toBeLessThan(32_768)
    for (const secret of Object.values(secretsOf(pattern))) expect(kept).not.toContain(secret)
  })

  it("gets the beginning of its answers", () => {
    const secrets = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`s${n}`, `"/+&<'>\\${n}.`.repeat(300)]))
    const answer = "z".repeat(65_536)
    const kept = maskOf(http, openOf(http, { url }, secrets))(answer)
    expect(kept.length).toBeGreaterThan(4_096)
    expect(kept.length).toBeLessThan(32_768)
    expect(answer.startsWith(kept)).toBe(true)
  })

  it("is not the owner of one private key", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
    const open = openOf(
      webhook,
      { url, headers: { authorization: "Bearer 0123456789" } },
      { secret: "whsec_0123456789", clientKey: pem }
    )
    const answer = "x".repeat(65_536)
    expect(maskOf(webhook, open)(answer)).toBe(answer)
  })
})

describe("what counts as a secret of a destination", () => {
  const marks = (text: string, channel: AnyChannel, open: OpenDestination) => maskOf(channel, open)(text)

  it("is the value of a header, its credential alone, and the password in one of Basic", () => {
    const headers = {
      authorization: `Basic ${base64("shop:hunter2-hunter2")}`,
      cookie: 'session=abcdef123; x="quoted-7890"'
    }
    const open = openOf(webhook, { url, headers })
    const mixed = openOf(http, { url, headers: { key: "k.literal-9.{{token}}" } }, { token: "sk_live_1" })
    expect(marks("k.literal-9.sk_live_1 and k.literal-9.", http, mixed)).toBe("****** and ***")
    for (const said of [
      headers.authorization,
      base64("shop:hunter2-hunter2"),
      "hunter2-hunter2",
      "abcdef123",
      "quoted-7890",
      "shop:hunter2-hunter2"
    ]) {
      expect(marks(said, webhook, open)).toBe("***")
    }
  })

  it("is no header of an HTTP target that only names secrets, and no short word", () => {
    const headers = { authorization: "Bearer {{token}}", accept: "v2" }
    const open = openOf(http, { url, headers }, { token: "sk_live_1" })
    expect(marks("Bearer {{token}} v2 sk_live_1", http, open)).toBe("Bearer {{token}} v2 ***")
  })

  it("is a parameter of the URL, and of the one that is asked", () => {
    const settings = {
      url: `${url}?token=abc%2Fdef-ghi&v=2`,
      reconcile: { url: `${url}?id={messageId}&key=another-secret` }
    }
    expect(
      marks("/in?token=abc%2Fdef-ghi&v=2 abc/def-ghi another-secret messageId", http, openOf(http, settings))
    ).toBe("/in?token=***&v=2 *** *** messageId")
  })

  it("is a parameter as it was written, however that was", () => {
    const open = openOf(http, { url: `${url}?token=a+b%2fc~d%21e%zz` })
    expect(marks("a+b%2fc~d%21e%zz", http, open)).toBe("***")
  })

  it("is no place for the id of a message in a URL", () => {
    const open = openOf(http, { url, reconcile: { url: `${url}?id=order-{messageId}&as=%7BmessageId%7D` } })
    const text = "order-{messageId} {messageId} %7BmessageId%7D"
    expect(marks(text, http, open)).toBe(text)
  })

  it("is the secret of a signature in each of its forms, and one before it", () => {
    const text = "a plain text that both sides share"
    const secret = `whsec_${base64(text)}`
    const before = `whsec_${base64("another text that both sides share")}`
    const open = openOf(webhook, { url }, { secret }, { secret: before })
    const bytes = Buffer.from(text).toString("hex")
    expect(marks(`${secret} ${base64(text)} ${text} ${bytes} ${before}`, webhook, open)).toBe("*** *** *** *** ***")
  })

  it("is the password of an AMQP target, as it was written and as it is meant", () => {
    const open = openOf(amqp, { url: "amqp://user@mq.example", exchange: "e" }, { password: "p%40ss-w%2Frd" })
    expect(marks("p%40ss-w%2Frd p@ss-w/rd", amqp, open)).toBe("*** ***")
  })

  it("is each line of a private key, and each secret of a WhatsApp account", () => {
    const key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAwEHBG0wawIBAQQgAAAA\n-----END PRIVATE KEY-----"
    expect(
      marks("MIGHAgEAMBMGByqGSM49 AwEHBG0wawIBAQQgAAAA", webhook, openOf(webhook, { url }, { clientKey: key }))
    ).toBe("*** ***")
    for (const way of ["hex", "base64", "base64url"] as const) {
      const repeated = Buffer.from(JSON.stringify({ key })).toString(way)
      const kept = marks(`${repeated}`, webhook, openOf(webhook, { url }, { clientKey: key }))
      for (const line of key.split("\n").slice(1, -1)) {
        expect(Buffer.from(kept, way).toString("latin1")).not.toContain(line.slice(0, 8))
      }
      expect(kept).toContain("***")
    }
    const account = openOf(
      whatsapp,
      { phoneNumberId: "17" },
      { accessToken: "EAAG1234", appSecret: "app-secret", verifyToken: "verify-me" }
    )
    expect(marks("EAAG1234 app-secret verify-me", whatsapp, account)).toBe("*** *** ***")
  })
})

describe("an attempt", () => {
  const secret = "sk_live_0123456789"
  const open = openOf(http, { url }, { token: secret })
  const replies: ReadonlyArray<Reply> = [
    {
      outcome: { type: "Accepted", status: 200, providerMessageId: `id-${secret}`, delivered: true, durationMs: 1 },
      responseBody: `you said ${secret}`,
      responseHeaders: { "x-echo": secret, [`x-${secret}`]: "1" }
    },
    ...(["Refused", "Unreachable", "Deferred", "Unknown"] as const).map(
      (type) =>
        ({
          outcome: {
            ...{
              type,
              status: null,
              durationMs: 1,
              retryAfterMs: null,
              scope: "lane",
              afterMs: 1,
              reconcileAfterMs: 1
            },
            error: { code: "channel_closed", message: `the broker closed it: ${secret}`, retryable: false }
          },
          responseBody: null
        }) as unknown as Reply
    )
  ]

  it.effect.each(replies.map((reply) => [reply.outcome.type, reply] as const))(
    "that ends as %s keeps none of it, whether it was sent or asked about",
    ([, reply]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const said = Effect.succeed(reply)
          const channel = { ...http, open: Effect.succeed({ send: () => said, reconcile: () => said }) }
          const sender = yield* senderKnowing(channel, () => Effect.succeed(open))
          const about = { orgId: org, destination: newLane() } as Parameters<typeof sender.send>[0]
          for (const kept of [yield* sender.send(about), yield* sender.reconcile(about)]) {
            expect(JSON.stringify(kept)).not.toContain(secret)
            expect(kept.outcome).toMatchObject({ type: reply.outcome.type, status: reply.outcome.status })
          }
        })
      )
  )

  it("has no id where the id held a secret, and keeps another", () => {
    const accepted = (providerMessageId: string) =>
      masked(http, open, {
        outcome: { type: "Accepted", status: 200, providerMessageId, delivered: true, durationMs: 1 },
        responseBody: null
      }).outcome
    expect(accepted(`wamid.${secret}`)).toMatchObject({ providerMessageId: null })
    expect(accepted("wamid.1")).toMatchObject({ providerMessageId: "wamid.1" })
  })
})

describe("a receipt", () => {
  it("stays JSON, and what it is found by stays", () => {
    const mask = maskOf(
      whatsapp,
      openOf(
        whatsapp,
        { phoneNumberId: "17" },
        { accessToken: '12345678"x', appSecret: "98765432", verifyToken: "test" }
      )
    )
    const raw = JSON.stringify({
      ...{ id: "wamid.test", status: "failed", timestamp: "17" },
      errors: [{ code: 131026, title: 'it said 12345678"x', details: [98765432] }]
    })
    expect(JSON.parse(maskedJson(mask, raw))).toEqual({
      ...{ id: "wamid.test", status: "failed", timestamp: "17" },
      errors: [{ code: 131026, title: "it said ***", details: ["***"] }]
    })
  })
})
