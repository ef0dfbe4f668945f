/**
 * Reads Meta's webhooks about sent messages: ids, times and codes, never phone numbers or texts. The signature covers
 * the raw bytes, and only the body tells whose secret applies, so `numbersIn` finds the phone number ids without
 * parsing. Escaped quotes keep a message from forging one.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { DateTime, Layer, Redacted, Result } from "effect"
import type { Receipt } from "../../../application/ports/WhatsAppReceipts.ts"
import { type Notice, WhatsAppReceipts } from "../../../application/ports/WhatsAppReceipts.ts"
import type { DeliveryError } from "../../../domain/delivery/DeliveryError.ts"
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
  // Latin-1 decodes any bytes; the ids are ASCII.
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
    // JSON shallow enough to parse can be too deep to write.
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

/** Seconds since 1970 as text or number, up to the year 9999. */
const momentOf = (timestamp: unknown): DateTime.Utc | null => {
  const text = typeof timestamp === "number" ? String(timestamp) : timestamp
  return typeof text === "string" && /^\d{1,11}$/.test(text) ? DateTime.makeUnsafe(Number(text) * 1000) : null
}

const unexplained: DeliveryError = {
  code: "whatsapp_failed",
  message: "Meta says that the message failed, and not why",
  retryable: false
}

/** A reported failure is final, so unknown codes count as permanent. */
const UNKNOWN_IS_LIKE = 400

const errorOf = (status: Members, codes: CodeOverrides): DeliveryError => {
  const { code } = membersOf(itemsOf(status["errors"])[0])
  if (typeof code !== "number" || !Number.isSafeInteger(code)) return unexplained
  return deliveryErrorOf(code, verdictOf({ code, subcode: null, isTransient: false }, UNKNOWN_IS_LIKE, codes))
}
