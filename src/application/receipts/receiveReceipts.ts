/**
 * Receives the receipts that Meta sends about messages. A call is only stored here, because Meta wants its answer within a
 * fraction of a second; applyReceipts.ts applies the receipts later.
 *
 *   prove   the body names phone numbers; a number is believed when its account's app secret signed these very bytes
 *   read    only the parts of the body about numbers that are believed
 *   store   all receipts of the call, so many in a commit: Meta repeats a call that was not answered, and none is stored twice
 *
 * A large body is read and stored in pieces, each in a turn of the org whose account has proven it.
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
  /** Waits for a turn of the org's to do a piece of work. */
  readonly turnOf: (org: OrgId) => Effect.Effect<void>
}

export type ReceiptAnswer =
  | { readonly type: "Taken" }
  /** No account's secret signed the body. Nothing was read or written. */
  | { readonly type: "Unproven" }
  | { readonly type: "Unreadable"; readonly reason: string }

/** All numbers of a body belong to one app. When none of the first is believed, the rest is not looked up. */
const NUMBERS_FIRST = 100
/** Masked, and stored in one commit. */
const STORED_AT_ONCE = 250

export const receiveReceipts = Effect.fn("receiveReceipts")(function* (
  call: ReceiptCall
): Effect.fn.Return<ReceiptAnswer, StoreUnavailable, Channels | Destinations | WhatsAppReceipts | ReceiptInbox> {
  const notices = yield* WhatsAppReceipts
  const numbers = notices.numbersIn(call.body)
  if (numbers === null) return { type: "Unreadable", reason: "it names too many phone numbers" }
  const believed = yield* believedOf(call, numbers.slice(0, NUMBERS_FIRST))
  if (believed.size === 0) {
    yield* Effect.logWarning(`a notice from WhatsApp was refused: ${whyNot(call, numbers)}`)
    return { type: "Unproven" }
  }
  for (const [number, account] of yield* believedOf(call, numbers.slice(NUMBERS_FIRST))) believed.set(number, account)

  const [{ destination: prover }] = [...believed.values()] as [OpenDestination]
  const pieces = notices.read(call.body)
  let piece = pieces.next()
  for (; piece.done !== true; piece = pieces.next()) yield* call.turnOf(prover.orgId)
  const read = piece.value
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
  const { add } = yield* ReceiptInbox
  for (let from = 0; from < arrived.length; from += STORED_AT_ONCE) {
    if (from > 0) yield* call.turnOf(prover.orgId)
    yield* add(
      arrived.slice(from, from + STORED_AT_ONCE).map(([account, raw]): ArrivedReceipt => {
        const { orgId, id } = account.destination
        return { orgId, account: id, raw: channel === undefined ? raw : maskedJson(maskOf(channel, account), raw) }
      })
    )
  }
  return { type: "Taken" }
})

const whyNot = ({ signature }: ReceiptCall, numbers: ReadonlyArray<string>): string => {
  if (signature === null) return "it is not signed"
  return numbers.length === 0
    ? "it names no phone number"
    : `no account is set up for ${shown(numbers)} with the app secret it was signed with`
}

interface Skipped {
  readonly receipts: number
  readonly numbers: Set<string | null>
}

const shown = (numbers: Iterable<string | null>): string => [...numbers].slice(0, 3).join(", ")

/** The accounts of the body's phone numbers. */
const believedOf = Effect.fnUntraced(function* ({ body, signature }: ReceiptCall, numbers: ReadonlyArray<string>) {
  const accounts = yield* Destinations
  const { isSigned } = yield* WhatsAppReceipts
  const believed = new Map<string, OpenDestination>()
  // Numbers of one app share its secret, and a body can be large.
  const tried = new Map<string, boolean>()
  const isProven = Effect.fnUntraced(function* (appSecret: Redacted.Redacted) {
    if (signature === null) return false
    const known = tried.get(Redacted.value(appSecret))
    if (known !== undefined) return known
    // Each takes milliseconds where the body is large.
    if (tried.size > 0) yield* Effect.yieldNow
    const proven = isSigned(body, signature, appSecret)
    tried.set(Redacted.value(appSecret), proven)
    return proven
  })
  for (const number of numbers) {
    // A secret that does not open is a fault on our side: Meta must repeat the call.
    const found = yield* Effect.catchDefect(accounts.withPublicKey(WHATSAPP, number), (cause) =>
      Effect.fail(new StoreUnavailable({ cause }))
    )
    if (found === null) continue
    if (yield* isProven(found.secrets["appSecret"]!)) believed.set(number, found)
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
