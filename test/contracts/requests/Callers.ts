/** Those who give commands in transactions of their own. Each store has its own way to let them in. */
import { Context, type Effect } from "effect"

export interface Transaction {
  /** The id that the message will have. */
  readonly send: (request: string, given?: { readonly org?: string; readonly key?: string }) => Effect.Effect<string>
  readonly commit: Effect.Effect<void>
  readonly rollback: Effect.Effect<void>
}

export class Callers extends Context.Service<Callers, { readonly begin: Effect.Effect<Transaction> }>()(
  "posthaste/test/contracts/requests/Callers"
) {}
