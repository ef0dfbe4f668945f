import { Context, type DateTime, type Duration } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"

export const COMMAND_MAX = 256 * 1024
/** The bytes after which an answer ends: all of it is in memory at once. */
export const COMMANDS_BYTES = 4 * 1024 * 1024

export interface GivenCommand {
  /** Its place among the commands. Opaque. */
  readonly place: { readonly tx: string; readonly n: string }
  readonly id: string
  readonly orgId: string
  readonly type: string
  readonly key: string | null
  /** JSON text, with every digit that the caller wrote. */
  readonly request: string
  readonly traceparent: string | null
}

export interface RefusedCommand extends Omit<GivenCommand, "place" | "traceparent"> {
  readonly problem: string
  readonly at: DateTime.Utc
}

/** The result of a command; without problem and `became` it became what its id says. */
export interface Settlement {
  readonly command: GivenCommand
  readonly problem: string | null
  /** The id of the earlier result of its key. */
  readonly became: string | null
}

/**
 * Commands that callers give in their own transactions, from the commit until they are settled.
 *
 * - `take` serves one process at a time, under a lease that asking renews. After a standstill commands may come
 *   twice: each must be obeyed once.
 * - `take` gives what `seen` does not know, by transaction and in the order given. An open transaction holds up only
 *   its own commands. Null for `seen` begins anew. Fewer than `limit` commands of fewer than `COMMANDS_BYTES` are all.
 * - `settle` forgets them. Refused ones are kept for a month, with the reason.
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
    readonly waitingSince: FromStore<DateTime.Utc | null>
    readonly settle: (settlements: ReadonlyArray<Settlement>) => FromStore<void>
    readonly refused: (orgId: OrgId, id: string) => FromStore<RefusedCommand | null>
    /** Refused in the last day and not marked; the oldest first. */
    readonly unpublished: (limit: number) => FromStore<ReadonlyArray<RefusedCommand>>
    readonly markPublished: (ids: ReadonlyArray<string>) => FromStore<void>
  }
>()("posthaste/application/ports/CommandInbox") {}
