import { Context, type Redacted, type Result } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { ReportedReceipt } from "../../domain/message/decider.ts"

export interface Receipt extends ReportedReceipt {
  readonly messageId: MessageId | null
}

/** The part of a notice from Meta about one phone number. */
export interface Notice {
  readonly phoneNumberId: string | null
  readonly statuses: ReadonlyArray<string>
  readonly inbound: number
}

/**
 * Reads notices from Meta. Nothing here fails or trusts: any sender can post a body until `isSigned` has proven that it
 * was signed with an app secret that only Meta and the account's owner know.
 */
export class WhatsAppReceipts extends Context.Service<
  WhatsAppReceipts,
  {
    /**
     * The phone number ids in a body, each once: they only say whose secret to try. Null where there are more than Meta
     * would name.
     */
    readonly numbersIn: (body: Uint8Array) => ReadonlyArray<string> | null
    /** Takes as long for a wrong signature as for the right one. */
    readonly isSigned: (body: Uint8Array, signature: string, appSecret: Redacted.Redacted) => boolean
    /** A failure is a fault of the whole body; senseless entries are left out. */
    readonly read: (body: Uint8Array) => Result.Result<ReadonlyArray<Notice>, string>
    readonly receiptOf: (status: string) => Result.Result<Receipt, string>
  }
>()("posthaste/application/ports/WhatsAppReceipts") {}
