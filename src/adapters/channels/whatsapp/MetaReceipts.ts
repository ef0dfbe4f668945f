/**
 * Reads what Meta posts to its webhooks, as far as it says what became of messages.
 *
 * The signature is an HMAC-SHA256 over the bytes as they came: Meta escapes characters in a way that no JSON writer of ours
 * would repeat, so a body must be checked before it is parsed and never after. Which secret it is to be checked with only
 * the body says; `numbersIn` finds the phone numbers by their key in the plain bytes. A person who writes such a key in a
 * message can't pretend to be one: quotes inside a JSON text are escaped.
 *
 * A body may have 4 MiB and be made by whoever has an account, to take time from others. So it is not parsed whole: the statuses are found
 * in its bytes and read so many at a time, messages are counted unread, and there is a bound to everything else, many times what Meta
 * sends: a thousand updates at once.
 *
 * Of what a status holds, only ids, times and codes are read. Phone numbers and Meta's own texts stay where they are.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { DateTime, Layer, Redacted, Result } from "effect"
import { BYTES_AT_ONCE } from "../../../application/pieces.ts"
import { type Notice, WhatsAppReceipts } from "../../../application/ports/WhatsAppReceipts.ts"
import type { Receipt } from "../../../application/receipts/recordReceipt.ts"
import type { DeliveryError } from "../../../domain/message/facts.ts"
import { readCallbackData } from "../../../domain/whatsapp/callbackData.ts"
import { findEntries, type List } from "../../api/entries.ts"
import { itemsOf, type Members, membersOf, PROVIDER_ID_MAX } from "./answer.ts"
import { type CodeOverrides, deliveryErrorOf, verdictOf } from "./errors.ts"

export const layer = (codes: CodeOverrides) =>
  Layer.succeed(
    WhatsAppReceipts,
    WhatsAppReceipts.of({ numbersIn, isSigned, read, receiptOf: (status) => receiptOf(status, codes) })
  )

/** How often a body may name a number. */
const NAMED_MAX = 5_000

const numbersIn = (body: Uint8Array): ReadonlyArray<string> | null => {
  // Latin-1 reads any bytes, and those that matter are ASCII.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1")
  const numbers = new Set<string>()
  let named = 0
  for (const [, number] of text.matchAll(/"phone_number_id"\s*:\s*"(\d{1,32})"/g)) {
    if (++named > NAMED_MAX) return null
    numbers.add(number!)
  }
  return [...numbers]
}

const isSigned = (body: Uint8Array, signature: string, appSecret: Redacted.Redacted): boolean => {
  const hex = createHmac("sha256", Redacted.value(appSecret)).update(body).digest("hex")
  const expected = Buffer.from(`sha256=${hex}`)
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** `{"entry": [{"changes": [{"value": {"statuses": [` and the lists beside these. */
const LISTS_DEPTH = 7
/** In all. */
const STATUSES_MAX = 10_000
/** Of one status; Meta's have some hundred. */
const STATUS_BYTES_MAX = 64 * 1024
/** Of all that is in none of the lists. */
const OUTSIDE_MAX = 512 * 1024
/** Read in one piece. */
const STATUSES_AT_ONCE = 50

function* read(body: Uint8Array): Generator<void, Result.Result<ReadonlyArray<Notice>, string>> {
  const search = findEntries(body, { most: STATUSES_MAX, outsideMax: OUTSIDE_MAX, depth: LISTS_DEPTH })
  while (!search.step()) yield
  const found = search.found()
  if (found === "TooMuchOutside") return Result.fail(`it has more than ${OUTSIDE_MAX} bytes beside its statuses`)
  if (found === "EndsInAList") return Result.fail("it is not valid JSON")
  const outside = parsed(found.outside)
  if (Result.isFailure(outside)) return Result.fail(outside.failure)
  const { entry } = membersOf(outside.success)
  if (!Array.isArray(entry)) return Result.fail("it has no list entry")
  /** In the place of a list its number stands in a list of its own. */
  const listAt = (value: unknown): List | undefined => found.lists[itemsOf(value)[0] as number]
  const notices: Array<Notice> = []
  let count = 0
  let together = 0
  let bytes = 0
  for (const change of entry.flatMap((one) => itemsOf(membersOf(one)["changes"]))) {
    const value = membersOf(membersOf(change)["value"])
    const { phone_number_id: number } = membersOf(value["metadata"])
    const list = listAt(value["statuses"])
    count += list?.count ?? 0
    if (count > STATUSES_MAX) return Result.fail(`it has more than ${STATUSES_MAX} statuses`)
    const statuses: Array<string> = []
    for (let at = 0; at < (list?.places.length ?? 0); at += 2) {
      const part = body.subarray(list!.places[at], list!.places[at + 1])
      if (together === STATUSES_AT_ONCE || bytes > BYTES_AT_ONCE) {
        together = 0
        bytes = 0
        yield
      }
      together++
      bytes += part.length
      const status = statusIn(part)
      if (Result.isFailure(status)) return Result.fail(status.failure)
      statuses.push(status.success)
    }
    const inbound = listAt(value["messages"])?.count ?? 0
    notices.push({ phoneNumberId: typeof number === "string" ? number : null, statuses, inbound })
  }
  return Result.succeed(notices)
}

const parsed = (bytes: Uint8Array): Result.Result<unknown, string> =>
  Result.flatMap(
    Result.try({ try: () => utf8.decode(bytes), catch: () => "it is not valid UTF-8" }),
    (text): Result.Result<unknown, string> =>
      Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not valid JSON" })
  )

const statusIn = (bytes: Uint8Array): Result.Result<string, string> =>
  bytes.length > STATUS_BYTES_MAX
    ? Result.fail(`it has a status of more than ${STATUS_BYTES_MAX} bytes`)
    : Result.flatMap(parsed(bytes), (status) =>
        // What was deep enough to be parsed may be too deep to be written.
        Result.try({
          try: () => JSON.stringify(status),
          catch: () => "its lists and objects lie too deep in each other"
        })
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
