import { Context, type DateTime } from "effect"
import type { FromStore } from "../errors.ts"

/** A process of this Posthaste, as it describes itself. */
export interface Registration {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly roles: ReadonlyArray<string>
  /** Of the release it runs. */
  readonly version: string
  /** It is to use Posthaste's own broker; only with the role relay does it. */
  readonly broker: boolean
  /** The process's own clock minus the store's, in milliseconds; null until it was measured. */
  readonly clockOffsetMs: number | null
}

export interface Process extends Registration {
  /** When it registered first, by the store's clock. */
  readonly since: DateTime.Utc
  readonly lastSeen: DateTime.Utc
  /** Seen within `SEEN_WITHIN_MS`. */
  readonly alive: boolean
}

/** How often a process says that it is there. */
export const SEEN_EVERY_MS = 5_000
/** A process that has been silent for longer counts as dead. */
export const SEEN_WITHIN_MS = 20_000
/** How long a process that vanished is still listed. */
export const KEPT_FOR_MS = 3_600_000

/**
 * Which processes there are. A process registers again and again, and leaves when it stops in order; one that was killed is
 * listed as not alive for an hour. All times are the store's. Nothing decides by this: who may do what is settled by
 * leases and versions.
 */
export class Processes extends Context.Service<
  Processes,
  {
    /** Registers the process, or says that it is still there. Answers the store's time. */
    readonly register: (process: Registration) => FromStore<DateTime.Utc>
    readonly leave: (id: string) => FromStore<void>
    /** The longest running first. */
    readonly list: FromStore<ReadonlyArray<Process>>
  }
>()("posthaste/application/ports/Processes") {}
