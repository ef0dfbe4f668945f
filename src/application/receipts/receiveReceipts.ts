/**
 * Receives the receipts that Meta sends about messages. A call is only stored here, because Meta wants its answer within a
 * fraction of a second; applyReceipts.ts applies the receipts later.
 *
 *   prove   the body names phone numbers; a number is believed when its account's app secret signed these very bytes
 *   read    only the parts of the body about numbers that are believed
 *   store   all receipts of the call in one commit
 *
 * The org is the account's. A caller that names an org gets only receipts of that org's accounts stored.
 */
import { Effect, Redacted, Result } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { maskedJson, maskOf } from "../destinations/masking.ts"
import { StoreUnavailable } from "../errors.ts"
import { Channels } from "../ports/Channels.ts"
import { type Destination, Destinations, type OpenDestination } from "../ports/Destinations.ts"
import { type ArrivedReceipt, ReceiptInbox } from "../ports/ReceiptInbox.ts"
import { type Notice, WhatsAppReceipts } from "../ports/WhatsAppReceipts.ts"

/** The channel whose receipts these are. */
export const WHATSAPP = "whatsapp"

export interface ReceiptCall {
  /** The bytes as they arrived: the signature is over these. */
  readonly body: Uint8Array
  readonly signature: string | null
  /** The org that the caller names. */
  readonly org: string | null
}

export type ReceiptAnswer =
  | { readonly type: "Taken" }
  /** No account's secret signed the body. Nothing was read or written. */
  | { readonly type: "Unproven" }
  | { readonly type: "Unreadable"; readonly reason: string }

/** All numbers of a body belong to one app. When none of the first is believed, the rest is not looked up. */
const NUMBERS_FIRST = 100

export const receiveReceipts = Effect.fn("receiveReceipts")(function* (
  call: ReceiptCall
): Effect.fn.Return<ReceiptAnswer, StoreUnavailable, Channels | Destinations | WhatsAppReceipts | ReceiptInbox> {
  const notices = yield* WhatsAppReceipts
  const numbers = notices.numbersIn(call.body)
  const believed = yield* believedOf(call, numbers.slice(0, NUMBERS_FIRST))
  if (believed.size === 0) {
    yield* Effect.logWarning(`a notice from WhatsApp was refused: ${whyNot(call, numbers)}`)
    return { type: "Unproven" }
  }
  for (const [number, account] of yield* believedOf(call, numbers.slice(NUMBERS_FIRST))) believed.set(number, account)

  const read = notices.read(call.body)
  if (Result.isFailure(read)) return { type: "Unreadable", reason: read.failure }
  const channel = (yield* Channels).get(WHATSAPP)
  const withoutSecrets = (account: OpenDestination, raw: string) =>
    channel === undefined ? raw : maskedJson(maskOf(channel, account), raw)
  const receipts: Array<ArrivedReceipt> = []
  for (const notice of read.success) {
    const account = notice.phoneNumberId === null ? undefined : believed.get(notice.phoneNumberId)
    if (account === undefined) yield* skipped(notice, "no account is proven for its phone number")
    else if (call.org !== null && call.org !== account.destination.orgId)
      yield* skipped(notice, "X-Org-Id names another org")
    else {
      const { orgId, id } = account.destination
      receipts.push(...notice.statuses.map((raw) => ({ orgId, account: id, raw: withoutSecrets(account, raw) })))
      if (notice.inbound > 0) yield* Effect.logDebug(`${notice.inbound} messages to WhatsApp account ${id} ignored`)
    }
  }
  if (receipts.length > 0) yield* (yield* ReceiptInbox).add(receipts)
  return { type: "Taken" }
})

const whyNot = ({ signature }: ReceiptCall, numbers: ReadonlyArray<string>): string => {
  if (signature === null) return "it is not signed"
  return numbers.length === 0
    ? "it names no phone number"
    : `no account is set up for ${numbers.slice(0, 3).join(", ")} with the app secret it was signed with`
}

const skipped = ({ phoneNumberId, statuses }: Notice, reason: string) =>
  Effect.logWarning(`${statuses.length} WhatsApp receipts for phone number ${phoneNumberId} skipped: ${reason}`)

/** The accounts of the body's phone numbers. */
const believedOf = Effect.fnUntraced(function* ({ body, signature }: ReceiptCall, numbers: ReadonlyArray<string>) {
  const accounts = yield* Destinations
  const { isSigned } = yield* WhatsAppReceipts
  const believed = new Map<string, OpenDestination>()
  // Numbers of one app share its secret, and a body can be large.
  const tried = new Map<string, boolean>()
  const isProven = (appSecret: Redacted.Redacted): boolean => {
    if (signature === null) return false
    const known = tried.get(Redacted.value(appSecret))
    const proven = known ?? isSigned(body, signature, appSecret)
    tried.set(Redacted.value(appSecret), proven)
    return proven
  }
  for (const number of numbers) {
    // A secret that does not open is a fault on our side: Meta must repeat the call.
    const found = yield* Effect.catchDefect(accounts.withPublicKey(WHATSAPP, number), (cause) =>
      Effect.fail(new StoreUnavailable({ cause }))
    )
    if (found === null) continue
    if (isProven(found.secrets["appSecret"]!)) believed.set(number, found)
    else if ("verifySignature" in found.destination.settings && found.destination.settings.verifySignature === false) {
      yield* warnOfUnverified(found.destination)
      believed.set(number, found)
    }
  }
  return believed
})

const unverified = ({ id, orgId }: { readonly id: DestinationId; readonly orgId: OrgId }) =>
  `WhatsApp account ${id} of org ${orgId} has verifySignature: false`

const warnOfUnverified = (account: Destination) =>
  Effect.logWarning(`${unverified(account)}: receipts were believed that nothing proves`)

/** Logged at every start while an account is unverified. */
export const warnOfUnverifiedAccounts = Effect.gen(function* () {
  for (const account of yield* (yield* Destinations).matching(WHATSAPP, { verifySignature: false })) {
    yield* Effect.logWarning(
      `${unverified(account)}: ANYBODY can make its messages look delivered or failed. Set it to true, except in tests`
    )
  }
}).pipe(
  Effect.catchTag("StoreUnavailable", (error) =>
    Effect.logWarning("which WhatsApp accounts believe unsigned receipts could not be found out", error)
  )
)
