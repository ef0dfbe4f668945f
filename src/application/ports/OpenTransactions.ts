import { Context, type DateTime, type Duration } from "effect"
import type { FromStore } from "../errors.ts"

/** Something of the database that keeps what others have deleted from being cleared away. */
export interface OpenTransaction {
  readonly kind: "transaction" | "prepared" | "slot"
  /** Null where no process stands behind it. */
  readonly pid: number | null
  /** What its program calls itself; the name of a prepared transaction or of a replication slot. */
  readonly name: string
  readonly database: string | null
  /** Null of a slot: the database does not know. */
  readonly since: DateTime.Utc | null
}

/**
 * Whose old view of the database is kept for them. The queue lives on rows that come and go: while one of these is open, every claim
 * walks over what went since. It need not be of Posthaste, nor of its tables.
 */
export class OpenTransactions extends Context.Service<
  OpenTransactions,
  {
    /** The oldest that has been open for longer than this. */
    readonly oldest: (longerThan: Duration.Duration) => FromStore<OpenTransaction | null>
  }
>()("posthaste/application/ports/OpenTransactions") {}
