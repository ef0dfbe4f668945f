import { Context, type Duration } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"

export interface ArrivedReceipt {
  readonly orgId: OrgId
  readonly account: DestinationId
  /** JSON text. */
  readonly raw: string
}

export interface HeldReceipt extends ArrivedReceipt {
  readonly id: string
  readonly tries: number
}

export type ReceiptResult =
  | { readonly type: "Done"; readonly id: string }
  | { readonly type: "Again"; readonly id: string; readonly tries: number; readonly afterMs: number }
  /** It can't be processed: kept for a person to examine. */
  | { readonly type: "Parked"; readonly id: string }

/**
 * Receipts between the answer to the provider and the streams of their messages.
 *
 * - After `add` all of the receipts survive any crash; before, none is stored. The same text for the same account is
 *   stored once.
 * - `claim` hands out due receipts, the longest due first, under a lease. One that was not settled by its end comes
 *   again: acting on a receipt must be safe to repeat.
 * - `settle` is safe to repeat and ignores receipts that are gone.
 */
export class ReceiptInbox extends Context.Service<
  ReceiptInbox,
  {
    readonly add: (receipts: ReadonlyArray<ArrivedReceipt>) => FromStore<void>
    readonly claim: (limit: number, lease: Duration.Duration) => FromStore<ReadonlyArray<HeldReceipt>>
    readonly settle: (results: ReadonlyArray<ReceiptResult>) => FromStore<void>
    readonly count: (orgId: OrgId | null) => FromStore<{ readonly waiting: number; readonly parked: number }>
    readonly forget: (parkedFor: Duration.Duration) => FromStore<number>
  }
>()("posthaste/application/ports/ReceiptInbox") {}
