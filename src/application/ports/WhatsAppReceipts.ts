import { Context, type Redacted, type Result } from "effect"
import type { Receipt } from "../receipts/recordReceipt.ts"

/** What one notice of Meta's says about one phone number. */
export interface Notice {
  /** Null when it does not say which. */
  readonly phoneNumberId: string | null
  /** Each as JSON text. */
  readonly statuses: ReadonlyArray<string>
  /** How many messages to us it brings. */
  readonly inbound: number
}

/**
 * How Meta tells what became of messages. Nothing here fails or trusts: a body is bytes from anybody until `isSigned`
 * has said that they were signed with an app secret that only Meta and the account's owner know.
 */
export class WhatsAppReceipts extends Context.Service<
  WhatsAppReceipts,
  {
    /** The phone number ids that stand in a body, each once. They prove nothing: they say whose secret to try. */
    readonly numbersIn: (body: Uint8Array) => ReadonlyArray<string>
    /** Takes as long for a wrong signature as for the right one. */
    readonly isSigned: (body: Uint8Array, signature: string, appSecret: Redacted.Redacted) => boolean
    /** A failure says what is wrong with the body as a whole; entries that make no sense are left out. */
    readonly read: (body: Uint8Array) => Result.Result<ReadonlyArray<Notice>, string>
    /** A failure says why this status is no receipt. */
    readonly receiptOf: (status: string) => Result.Result<Receipt, string>
  }
>()("posthaste/application/ports/WhatsAppReceipts") {}
