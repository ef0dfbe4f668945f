/**
 * Reads what Meta posts to its webhooks, as far as it says what became of messages.
 *
 * The signature is an HMAC-SHA256 over the bytes as they came: Meta escapes characters in a way that no JSON writer of ours
 * would repeat, so a body must be checked before it is parsed and never after. Which secret it is to be checked with only
 * the body says; `numbersIn` finds the phone numbers by their key in the plain bytes. A person who writes such a key in a
 * message can't pretend to be one: quotes inside a JSON text are escaped.
 *
 * Of what a status holds, only ids, times and codes are read. Phone numbers and Meta's own texts stay where they are.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { DateTime, Layer, Redacted, Result } from "effect"
import { type Notice, WhatsAppReceipts } from "../../../application/ports/WhatsAppReceipts.ts"
import type { Receipt } from "../../../application/receipts/recordReceipt.ts"
import type { DeliveryError } from "../../../domain/message/facts.ts"
import { readCallbackData } from "../../../domain/whatsapp/callbackData.ts"
import { itemsOf, type Members, membersOf, PROVIDER_ID_MAX } from "./answer.ts"
import { type CodeOverrides, deliveryErrorOf, verdictOf } from "./errors.ts"

export const layer = (codes: CodeOverrides) =>
  Layer.succeed(
    WhatsAppReceipts,
    WhatsAppReceipts.of({ numbersIn, isSigned, read, receiptOf: (status) => receiptOf(status, codes) })
  )

const NUMBERS_MAX = 1_000

const numbersIn = (body: Uint8Array): ReadonlyArray<string> | null => {
  // Latin-1 reads any bytes, and those that matter are ASCII.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1")
  const numbers = new Set([...text.matchAll(/"phone_number_id"\s*:\s*"(\d{1,32})"/g)].map(([, number]) => number!))
  return numbers.size > NUMBERS_MAX ? null : [...numbers]
}

const isSigned = (body: Uint8Array, signature: string, appSecret: Redacted.Redacted): boolean => {
  const hex = createHmac("sha256", Redacted.value(appSecret)).update(body).digest("hex")
  const expected = Buffer.from(`sha256=${hex}`)
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const read = (body: Uint8Array): Result.Result<ReadonlyArray<Notice>, string> =>
  Result.flatMap(parsed(body), (whole) => {
    const { entry } = membersOf(whole)
    if (!Array.isArray(entry)) return Result.fail("it has no list entry")
    // JSON that was not too deep to be parsed may be too deep to be written.
    return Result.try({
      try: () => entry.flatMap((one) => itemsOf(membersOf(one)["changes"])).map(noticeOf),
      catch: () => "its lists and objects lie too deep in each other"
    })
  })

const noticeOf = (change: unknown): Notice => {
  const value = membersOf(membersOf(change)["value"])
  const { phone_number_id: number } = membersOf(value["metadata"])
  return {
    phoneNumberId: typeof number === "string" ? number : null,
    statuses: itemsOf(value["statuses"]).map((status) => JSON.stringify(status)),
    inbound: itemsOf(value["messages"]).length
  }
}

const parsed = (bytes: Uint8Array): Result.Result<unknown, string> =>
  Result.flatMap(
    Result.try({ try: () => utf8.decode(bytes), catch: () => "it is not valid UTF-8" }),
    (text): Result.Result<unknown, string> =>
      Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not valid JSON" })
  )

const kinds: ReadonlyArray<Receipt["receipt"]> = ["sent", "delivered", "read", "failed"]

const receiptOf = (text: string, codes: CodeOverrides): Result.Result<Receipt, string> => {
  const status = membersOf(JSON.parse(text))
  const { id, timestamp, biz_opaque_callback_data: data } = status
  const receipt = kinds.find((kind) => kind === status["status"])
  if (receipt === undefined) return Result.fail(`${shown(status["status"])}, which says nothing of a message's fate`)
  if (!isProviderId(id)) return Result.fail("it has no id")
  const reportedAt = momentOf(timestamp)
  if (reportedAt === null) return Result.fail("it has no timestamp")
  const ours = typeof data === "string" ? readCallbackData(data) : null
  return Result.succeed({
    receipt,
    messageId: ours?.messageId ?? null,
    epoch: ours?.epoch ?? null,
    attempt: ours?.attempt ?? null,
    providerMessageId: id,
    reportedAt,
    error: receipt === "failed" ? errorOf(status, codes) : null
  })
}

const shown = (value: unknown) =>
  typeof value === "string" ? `its status is ${JSON.stringify(value.slice(0, 40))}` : "it has no status"

// biome-ignore lint/suspicious/noControlCharactersInRegex: no name has them, and a database would choke on them
const control = /[\u0000-\u001f\u007f]/

const isProviderId = (id: unknown): id is string =>
  typeof id === "string" && id !== "" && id.length <= PROVIDER_ID_MAX && !control.test(id) && id.isWellFormed()

/** Seconds since 1970 as a text or a number, up to the year 9999. */
const momentOf = (timestamp: unknown): DateTime.Utc | null => {
  const text = typeof timestamp === "number" ? String(timestamp) : timestamp
  return typeof text === "string" && /^\d{1,11}$/.test(text) ? DateTime.makeUnsafe(Number(text) * 1000) : null
}

const unexplained: DeliveryError = {
  code: "whatsapp_failed",
  message: "Meta says that the message failed, and not why",
  retryable: false
}

/** A failure is final, so a code that nobody knows is not one that may pass. */
const UNKNOWN_IS_LIKE = 400

const errorOf = (status: Members, codes: CodeOverrides): DeliveryError => {
  const { code } = membersOf(itemsOf(status["errors"])[0])
  if (typeof code !== "number" || !Number.isSafeInteger(code)) return unexplained
  return deliveryErrorOf(code, verdictOf({ code, subcode: null, isTransient: false }, UNKNOWN_IS_LIKE, codes))
}
