import { Context, type DateTime, type Duration } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/** Of one command, in bytes; the same as of a request over HTTP. */
export const COMMAND_MAX = 256 * 1024
/** An answer ends with the command with which it has so many bytes: all of it is in memory at once. */
export const COMMANDS_BYTES = 4 * 1024 * 1024

/** A command that a transaction of its caller's own gave. Nothing about it was judged yet. */
export interface GivenCommand {
  /** Its place among the commands. Opaque. */
  readonly place: { readonly tx: string; readonly n: string }
  /** The id that its caller was given. */
  readonly id: string
  readonly orgId: string
  readonly type: string
  readonly key: string | null
  /** JSON text, with every digit that the caller wrote. */
  readonly request: string
  /** The trace that its caller names (W3C). */
  readonly traceparent: string | null
}

export interface RefusedCommand extends Omit<GivenCommand, "place" | "traceparent"> {
  /** The problem document, as JSON text. */
  readonly problem: string
  readonly at: DateTime.Utc
}

/** What became of a command; a command without either became what its id says. */
export interface Settlement {
  readonly command: GivenCommand
  /** JSON text of the problem document; null when it was accepted. */
  readonly problem: string | null
  /** The id of what it became, when its key had been used for that before. */
  readonly became: string | null
}

/**
 * Commands that callers give in their own transactions. A command is here once its transaction is committed, and until it
 * is settled.
 *
 * - One process at a time is given commands, for as long as its lease lasts and is renewed by asking. A process that
 *   stood still for longer may give them a second time: whoever decides them must obey each once.
 * - `take` gives what `seen` does not know, in the order of the transactions and within each in the order it was
 *   given. A transaction that stays open holds up its own commands and no others: they come when it commits. Null for
 *   `seen` begins anew and gives everything. Fewer than `limit` commands of fewer than `COMMANDS_BYTES` are all there are.
 * - `settle` forgets them. What was refused is kept for a month, with the reason.
 */
export class CommandInbox extends Context.Service<
  CommandInbox,
  {
    /** `seen` is null when another process has the lease. */
    readonly take: (
      holder: string,
      lease: Duration.Duration,
      seen: string | null,
      limit: number
    ) => FromStore<{ readonly seen: string | null; readonly commands: ReadonlyArray<GivenCommand> }>
    /** About when the oldest was given that is not settled; null while there is none. */
    readonly waitingSince: FromStore<DateTime.Utc | null>
    readonly settle: (settlements: ReadonlyArray<Settlement>) => FromStore<void>
    readonly refused: (orgId: OrgId, id: string) => FromStore<RefusedCommand | null>
    /** Refused in the last day, and not marked yet; the oldest first. */
    readonly unpublished: (limit: number) => FromStore<ReadonlyArray<RefusedCommand>>
    readonly markPublished: (ids: ReadonlyArray<string>) => FromStore<void>
  }
>()("posthaste/application/ports/CommandInbox") {}
