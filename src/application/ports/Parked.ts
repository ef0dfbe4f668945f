import { Context, type DateTime } from "effect"
import type { FromStore, Page, PageRequest } from "../errors.ts"

/** `unreadable`: a stored fact is none that this release can read. `failed`: Posthaste fails while it works on the stream. */
export const parkedReasons = ["unreadable", "failed"] as const
export type ParkedReason = (typeof parkedReasons)[number]

export interface ParkedStream {
  readonly stream: string
  readonly reason: ParkedReason
  readonly at: DateTime.Utc
}

/**
 * Streams that Posthaste can't process. Each reader of the log goes on without their facts; what it leaves out comes back when its rows
 * are built anew, and alerts and facts for a broker stay out.
 *
 * - `park` answers the streams that were not parked before, so that the log names each once.
 */
export class Parked extends Context.Service<
  Parked,
  {
    readonly park: (streams: ReadonlyMap<string, ParkedReason>) => FromStore<ReadonlyArray<string>>
    /** Of all orgs, by stream. */
    readonly list: (page: PageRequest) => FromStore<Page<ParkedStream>>
  }
>()("posthaste/application/ports/Parked") {}
