/**
 * Receives and stores Meta's receipts; applyReceipts.ts applies them later, because Meta wants its answer within a
 * fraction of a second. The body names phone numbers: a number is believed when its account's app secret signed these
 * very bytes, and only believed parts are read. Meta repeats unanswered calls; each receipt is stored once. A caller
 * that names an org reaches only its accounts.
 */
import { Effect, Redacted, Result } from "effect"
import { maskedJson, maskOf } from "../destinations/masking.ts"
import { Channels } from "../ports/Channels.ts"
import { Destinations, type OpenDestination } from "../ports/Destinations.ts"
import { StoreUnavailable } from "../ports/errors.ts"
import { Pulse } from "../ports/Pulse.ts"
import { type ArrivedReceipt, ReceiptInbox } from "../ports/ReceiptInbox.ts"
import { type Notice, WhatsAppReceipts } from "../ports/WhatsAppReceipts.ts"

export const WHATSAPP = "whatsapp"

export interface ReceiptCall {
  /** The bytes as they arrived: the signature is over these. */
  readonly body: Uint8Array
  readonly signature: string
  readonly org: string | null
}

export type ReceiptAnswer =
  | { readonly type: "Taken" }
  /** No account's secret signed the body. Nothing was read or written. */
  | { readonly type: "Unproven"; readonly why: string }
  | { readonly type: "Unreadable"; readonly reason: string }

/** The most secrets that are tried: numbers of one app share its secret, and a body is of one app. */
const SECRETS_MAX = 10

export const receiveReceipts = Effect.fn("receiveReceipts")(function* (
  call: ReceiptCall
): Effect.fn.Return<ReceiptAnswer, StoreUnavailable, Channels | Destinations | WhatsAppReceipts | ReceiptInbox> {
  const notices = yield* WhatsAppReceipts
  const numbers = notices.numbersIn(call.body)
  if (numbers === null) return { type: "Unreadable", reason: "it names too many phone numbers" }
  const believed = yield* believedOf(call, numbers)
  if (believed.size === 0) return { type: "Unproven", why: whyNot(numbers) }

  const read = notices.read(call.body)
  if (Result.isFailure(read)) return { type: "Unreadable", reason: read.failure }
  const channel = (yield* Channels).get(WHATSAPP)
  const arrived: Array<readonly [OpenDestination, string]> = []
  let inbound = 0
  const skipped = new Map<string, Skipped>()
  const skip = (why: string, { phoneNumberId, statuses }: Notice) => {
    const others = skipped.get(why) ?? { receipts: 0, numbers: new Set() }
    skipped.set(why, { receipts: others.receipts + statuses.length, numbers: others.numbers.add(phoneNumberId) })
  }
  for (const notice of read.success) {
    const account = notice.phoneNumberId === null ? undefined : believed.get(notice.phoneNumberId)
    if (account === undefined) skip("no account is proven for its phone number", notice)
    else if (call.org !== null && call.org !== account.destination.orgId) skip("X-Org-Id names another org", notice)
    else {
      for (const raw of notice.statuses) arrived.push([account, raw])
      inbound += notice.inbound
    }
  }
  if (inbound > 0) yield* Effect.logDebug(`${inbound} messages to WhatsApp accounts ignored`)
  for (const [why, { receipts, numbers }] of skipped)
    yield* Effect.logWarning(`${receipts} WhatsApp receipts for the phone numbers ${shown(numbers)} skipped: ${why}`)
  if (arrived.length > 0) {
    yield* (yield* ReceiptInbox).add(
      arrived.map(([account, raw]): ArrivedReceipt => {
        const { orgId, id } = account.destination
        return { orgId, account: id, raw: channel === undefined ? raw : maskedJson(maskOf(channel, account), raw) }
      })
    )
    yield* (yield* Pulse).wake("receipts")
  }
  return { type: "Taken" }
})

const whyNot = (numbers: ReadonlyArray<string>): string =>
  numbers.length === 0
    ? "it names no phone number"
    : `no account is set up for ${shown(numbers)} with the app secret it was signed with`

interface Skipped {
  readonly receipts: number
  readonly numbers: Set<string | null>
}

const shown = (numbers: Iterable<string | null>): string => [...numbers].slice(0, 3).join(", ")

const believedOf = Effect.fnUntraced(function* ({ body, signature }: ReceiptCall, numbers: ReadonlyArray<string>) {
  const { isSigned } = yield* WhatsAppReceipts
  // A secret that does not open is a fault of Posthaste: Meta must repeat the call.
  const found = yield* Effect.catchDefect((yield* Destinations).withPublicKeys(WHATSAPP, numbers), (cause) =>
    Effect.fail(new StoreUnavailable({ cause }))
  )
  const tried = new Map<string, boolean>()
  const isProven = (appSecret: Redacted.Redacted): boolean => {
    const secret = Redacted.value(appSecret)
    const known = tried.get(secret)
    if (known !== undefined) return known
    const proven = tried.size < SECRETS_MAX && isSigned(body, signature, appSecret)
    tried.set(secret, proven)
    return proven
  }
  const isBelieved = ({ destination: { settings }, secrets }: OpenDestination) =>
    isProven(secrets["appSecret"]!) || ("verifySignature" in settings && settings.verifySignature === false)
  return new Map(
    numbers.flatMap((number) => {
      const account = found.get(number)
      return account !== undefined && isBelieved(account) ? [[number, account]] : []
    })
  )
})

export const warnOfUnverifiedAccounts = Effect.gen(function* () {
  for (const account of yield* (yield* Destinations).matching(WHATSAPP, { verifySignature: false })) {
    yield* Effect.logWarning(
      `WhatsApp account ${account.id} of org ${account.orgId} has verifySignature: false: ANYBODY can make its messages look delivered or failed. Set it to true, except in tests`
    )
  }
}).pipe(
  Effect.catchTag("StoreUnavailable", (error) =>
    Effect.logWarning("which WhatsApp accounts believe unsigned receipts could not be found out", error)
  )
)
