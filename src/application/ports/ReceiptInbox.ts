import { Context, type Duration, type Effect } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"

/** A provider's receipt about a message sent from an account, as it arrived and not yet read. */
export interface ArrivedReceipt {
  readonly orgId: OrgId
  readonly account: DestinationId
  /** JSON text. */
  readonly raw: string
}

export interface HeldReceipt extends ArrivedReceipt {
  readonly id: string
  /** How often its message was looked for in vain. */
  readonly tries: number
}

/** What becomes of a receipt that was looked at. */
export type ReceiptResult =
  /** There is nothing left to do about it. */
  | { readonly type: "Done"; readonly id: string }
  | { readonly type: "Again"; readonly id: string; readonly tries: number; readonly afterMs: number }
  /** Nothing can be done about it. It is kept to be looked into, and not handed out any more. */
  | { readonly type: "Parked"; readonly id: string }

/**
 * Receipts between the answer to the provider and the streams of their messages.
 *
 * - Once `add` has answered, all of them survive any crash; before, none is there. One that is here already, word for
 *   word and of the same account, is not taken twice.
 * - `claim` hands out what is due, the longest due first, and nobody else gets it until the lease has run out. What was
 *   handed out and not settled by then, because somebody crashed, is handed out again: acting on a receipt must be safe
 *   to repeat.
 * - `settle` is safe to repeat, and says nothing about receipts that are gone.
 */
export class ReceiptInbox extends Context.Service<
  ReceiptInbox,
  {
    readonly add: (receipts: ReadonlyArray<ArrivedReceipt>) => Effect.Effect<void, StoreUnavailable>
    readonly claim: (
      limit: number,
      lease: Duration.Duration
    ) => Effect.Effect<ReadonlyArray<HeldReceipt>, StoreUnavailable>
    readonly settle: (results: ReadonlyArray<ReceiptResult>) => Effect.Effect<void, StoreUnavailable>
    readonly count: (
      orgId: OrgId
    ) => Effect.Effect<{ readonly waiting: number; readonly parked: number }, StoreUnavailable>
    /** Drops what has been parked for longer; answers how many there were. */
    readonly forget: (parkedFor: Duration.Duration) => Effect.Effect<number, StoreUnavailable>
  }
>()("posthaste/application/ports/ReceiptInbox") {}
