import { createHmac } from "node:crypto"
import { DateTime, Effect, Redacted, Result } from "effect"
import { describe, expect, it } from "vitest"
import { parseCodes } from "../../../../src/adapters/channels/whatsapp/errors.ts"
import * as MetaReceipts from "../../../../src/adapters/channels/whatsapp/MetaReceipts.ts"
import { WhatsAppReceipts } from "../../../../src/application/ports/WhatsAppReceipts.ts"

const notices = (codes = "") =>
  Effect.runSync(Effect.provide(WhatsAppReceipts, MetaReceipts.layer(Result.getOrThrow(parseCodes(codes)))))
const { numbersIn, isSigned, read } = notices()
const bytes = (text: string) => new TextEncoder().encode(text)
const secret = Redacted.make("an app secret")
const signature = (text: string) => `sha256=${createHmac("sha256", "an app secret").update(text).digest("hex")}`

/** As Meta's documentation shows it. */
const documented = String.raw`{
  "object": "whatsapp_business_account",
  "entry": [{
    "id": "102290129340398",
    "changes": [{
      "value": {
        "messaging_product": "whatsapp",
        "metadata": { "display_phone_number": "15550783881", "phone_number_id": "106540352242922" },
        "statuses": [
          { "id": "wamid.HBgL", "status": "sent", "timestamp": "1750030073", "recipient_id": "16505551234",
            "pricing": { "billable": true, "pricing_model": "PMP", "category": "utility", "type": "regular" } },
          { "id": "wamid.HBgM", "status": "failed", "timestamp": "1750030074", "recipient_id": "16505551234",
            "errors": [{ "code": 131049, "title": "This message was not delivered", "message": "16505551234 had enough \u00e4\u00f6 \ud83d\udc4b" }] }
        ]
      },
      "field": "messages"
    }]
  }]
}`

const receiptOf = (status: unknown, codes = "") => notices(codes).receiptOf(JSON.stringify(status))
const sent = { id: "wamid.HBgL", status: "sent", timestamp: "1750030073" }
const id = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"

describe("a notice of Meta's", () => {
  it("is read as Meta documents it", () => {
    const [notice, ...others] = Result.getOrThrow(read(bytes(documented)))
    expect(others).toEqual([])
    expect(notice).toMatchObject({ phoneNumberId: "106540352242922", inbound: 0 })
    const [first, second] = notice!.statuses.map((status) => Result.getOrThrow(notices().receiptOf(status)))
    expect(first).toEqual({
      receipt: "sent",
      messageId: null,
      epoch: null,
      attempt: null,
      providerMessageId: "wamid.HBgL",
      reportedAt: DateTime.makeUnsafe("2025-06-15T23:27:53Z"),
      error: null
    })
    expect(second).toMatchObject({
      receipt: "failed",
      error: { code: "whatsapp_131049", message: expect.stringContaining("too many marketing messages") }
    })
    // What Meta writes may name the recipient, and facts are kept for ever.
    expect(JSON.stringify([first, second])).not.toContain("16505551234")
  })

  it("is one for each change, also of a number twice, and leaves out what makes no sense", () => {
    const change = (phone_number_id: unknown, rest: object) => ({ value: { metadata: { phone_number_id }, ...rest } })
    const body = JSON.stringify({
      entry: [
        null,
        "text",
        { changes: "none" },
        { changes: [null, change("1", { statuses: [1, null] }), change("2", { messages: [{}, {}] })] },
        { changes: [change("1", { statuses: "none" }), change(3, { statuses: [{}] })] }
      ]
    })
    expect(Result.getOrThrow(read(bytes(body)))).toEqual([
      { phoneNumberId: null, statuses: [], inbound: 0 },
      { phoneNumberId: "1", statuses: ["1", "null"], inbound: 0 },
      { phoneNumberId: "2", statuses: [], inbound: 2 },
      { phoneNumberId: "1", statuses: [], inbound: 0 },
      { phoneNumberId: null, statuses: ["{}"], inbound: 0 }
    ])
  })

  it.each([
    ["", "not valid JSON"],
    ['{"entry": [', "not valid JSON"],
    ["[]", "no list entry"],
    ["null", "no list entry"],
    ['{"entry": {}}', "no list entry"],
    [`{"entry": [{"changes": [{"value": {"statuses": [${"[".repeat(20_000)}${"]".repeat(20_000)}]}}]}]}`, "too deep"]
  ])("that can't be read says why: %#", (text, reason) => {
    expect(read(bytes(text))).toMatchObject({ failure: expect.stringContaining(reason) })
  })

  it("has its inbound messages counted, whatever they say", () => {
    const messages = `{"text":${"[".repeat(50_000)}${"]".repeat(50_000)}}`
    const body = `{"entry":[{"changes":[{"value":{"metadata":{"phone_number_id":"1"},"messages":[${messages},{}]}}]}]}`
    expect(read(bytes(body))).toEqual(Result.succeed([{ phoneNumberId: "1", statuses: [], inbound: 2 }]))
  })

  it("that names more numbers than Meta would is not looked through", () => {
    const named = (count: number) => bytes(Array.from({ length: count }, (_, n) => `"phone_number_id":"${n}"`).join())
    expect([numbersIn(named(1_000))?.length, numbersIn(named(1_001))]).toEqual([1_000, null])
  })

  it("that is not UTF-8 can't be read", () => {
    expect(read(new Uint8Array([0x7b, 0xff, 0x7d]))).toMatchObject({ failure: expect.stringContaining("UTF-8") })
  })

  it("names its phone numbers before it is parsed, each once, and none that a person wrote", () => {
    const text = JSON.stringify({ text: '"phone_number_id":"666"', more: '\\"phone_number_id": "667"' })
    const body = `${documented} ${text} {"phone_number_id" : "17"} {"phone_number_id":"x"} "phone_number_id":"106540352242922"`
    expect(numbersIn(bytes(body))).toEqual(["106540352242922", "17"])
    expect(numbersIn(new Uint8Array([0xff, ...bytes('"phone_number_id":"5"'), 0xfe]))).toEqual(["5"])
  })
})

describe("a signature", () => {
  const text = documented
  const given = signature(text)

  it("holds for the very bytes, escapes and all", () => {
    expect(isSigned(bytes(text), given, secret)).toBe(true)
    expect(isSigned(bytes(text), given, Redacted.make("another app secret"))).toBe(false)
    // The same JSON, written otherwise.
    expect(isSigned(bytes(JSON.stringify(JSON.parse(text))), given, secret)).toBe(false)
    expect(isSigned(bytes(text.replace(String.raw`\u00e4`, "ä")), given, secret)).toBe(false)
  })

  it("does not survive a flipped bit anywhere in the body", () => {
    const body = bytes(text)
    for (let at = 0; at < body.length; at++) {
      const flipped = body.with(at, body[at]! ^ (1 << (at % 8)))
      expect(isSigned(flipped, given, secret)).toBe(false)
    }
  })

  it("does not survive a change in itself", () => {
    for (let at = 0; at < given.length; at++) {
      for (const bit of [1, 0x20, 0x80]) {
        const wrong = given.slice(0, at) + String.fromCharCode(given.charCodeAt(at) ^ bit) + given.slice(at + 1)
        expect(isSigned(bytes(text), wrong, secret)).toBe(false)
      }
    }
    const hex = given.slice("sha256=".length)
    for (const wrong of [
      "",
      "sha256=",
      hex,
      given.slice(0, -1),
      `${given}0`,
      ` ${given}`,
      `sha1=${hex}`,
      given.toUpperCase()
    ]) {
      expect(isSigned(bytes(text), wrong, secret)).toBe(false)
    }
  })
})

describe("a status", () => {
  it("brings back which attempt of ours it is about, and nothing that is not ours", () => {
    const about = (data: unknown) => Result.getOrThrow(receiptOf({ ...sent, biz_opaque_callback_data: data }))
    expect(about(`posthaste1.${id}.2.3`)).toMatchObject({ messageId: id, epoch: 2, attempt: 3 })
    for (const data of ["theirs", "", 7, null, `posthaste1.${id}.0.3`]) {
      expect(about(data)).toMatchObject({ messageId: null, epoch: null, attempt: null })
    }
  })

  it.each(["sent", "delivered", "read"])("that is %s is a receipt without an error, whatever it holds", (status) => {
    expect(receiptOf({ ...sent, status, errors: [{ code: 131026 }] })).toMatchObject({
      success: { receipt: status, error: null }
    })
  })

  it("that failed is judged by Meta's code, as an operator may have overruled it", () => {
    const failed = (errors: unknown, codes = "") =>
      Result.getOrThrow(receiptOf({ ...sent, status: "failed", errors }, codes)).error
    expect(failed([{ code: 131026, title: "Message undeliverable" }])).toEqual({
      code: "whatsapp_131026",
      message: "Meta's error 131026: the recipient can't receive the message",
      retryable: false
    })
    expect(failed([{ code: 131016 }])).toMatchObject({ code: "whatsapp_131016", retryable: true })
    expect(failed([{ code: 131026 }], "131026=temporary")).toMatchObject({ retryable: true })
    expect(failed([{ code: 999_999, title: "New" }])).toEqual({
      code: "whatsapp_999999",
      message: "Meta's error 999999: an error",
      retryable: false
    })
    for (const errors of [undefined, [], [null], "none", [{ code: "131026" }], [{ code: 1.5 }]]) {
      expect(failed(errors)).toMatchObject({ code: "whatsapp_failed", retryable: false })
    }
  })

  it.each([
    [null, "no status"],
    [17, "no status"],
    [{}, "no status"],
    [{ ...sent, status: "deleted" }, '"deleted", which says nothing'],
    [{ ...sent, status: "played" }, '"played", which says nothing'],
    [{ ...sent, status: 7 }, "no status"],
    [{ ...sent, status: "toString" }, "which says nothing"],
    [{ ...sent, id: undefined }, "no id"],
    [{ ...sent, id: "" }, "no id"],
    [{ ...sent, id: 7 }, "no id"],
    [{ ...sent, id: "wamid.\u0000" }, "no id"],
    [{ ...sent, id: "wamid.\ud800" }, "no id"],
    [{ ...sent, id: "w".repeat(513) }, "no id"],
    [{ ...sent, timestamp: undefined }, "no timestamp"],
    [{ ...sent, timestamp: "yesterday" }, "no timestamp"],
    [{ ...sent, timestamp: "-1" }, "no timestamp"],
    [{ ...sent, timestamp: 1e21 }, "no timestamp"],
    [{ ...sent, timestamp: "999999999999" }, "no timestamp"]
  ])("that makes no sense is none, and says why: %#", (status, reason) => {
    expect(receiptOf(status)).toMatchObject({ failure: expect.stringContaining(reason) })
  })

  it("may bring its time as a number", () => {
    expect(receiptOf({ ...sent, timestamp: 1750030073 })).toEqual(receiptOf(sent))
  })
})
