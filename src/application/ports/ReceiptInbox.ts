import { Context, type Duration } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/** A provider's receipt about a message sent from an account, as it arrived and not yet read. */
export interface ArrivedReceipt {
  readonly orgId: OrgId
  readonly account: DestinationId
  /** JSON text. */
  readonly raw: string
}

export interface HeldReceipt extends ArrivedReceipt {
  readonly id: string
  /** How often its message was not found. */
  readonly tries: number
}

/** The result of processing a receipt. */
export type ReceiptResult =
  /** Nothing is left to do. */
  | { readonly type: "Done"; readonly id: string }
  | { readonly type: "Again"; readonly id: string; readonly tries: number; readonly afterMs: number }
  /** It can't be processed. It is kept for a person to examine and not handed out any more. */
  | { readonly type: "Parked"; readonly id: string }

/**
 * Receipts between the answer to the provider and the streams of their messages.
 *
 * - Once `add` has answered, all of the receipts survive any crash; before, none is stored. A receipt that is stored
 *   already, word for word and for the same account, is not stored twice.
 * - `claim` hands out receipts that are due, the longest due first, and no other caller gets them until the lease has
 *   run out. A receipt that was not settled by then, because of a crash, is handed out again: acting on a receipt must
 *   be safe to repeat.
 * - `settle` is safe to repeat and ignores receipts that are gone.
 */
export class ReceiptInbox extends Context.Service<
  ReceiptInbox,
  {
    readonly add: (receipts: ReadonlyArray<ArrivedReceipt>) => FromStore<void>
    readonly claim: (limit: number, lease: Duration.Duration) => FromStore<ReadonlyArray<HeldReceipt>>
    readonly settle: (results: ReadonlyArray<ReceiptResult>) => FromStore<void>
    readonly count: (orgId: OrgId | null) => FromStore<{ readonly waiting: number; readonly parked: number }>
    /** Deletes receipts that have been parked for longer; answers their number. */
    readonly forget: (parkedFor: Duration.Duration) => FromStore<number>
  }
>()("posthaste/application/ports/ReceiptInbox") {}
