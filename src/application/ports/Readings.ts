import { Context, type Duration } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/** What the queue holds, of all orgs together. */
export interface QueueCounts {
  /** Messages that wait for an attempt, by channel; as the lists know it. */
  readonly waiting: Readonly<Record<string, number>>
  /** Messages that can't be processed; absent in what an older release read. */
  readonly setAside?: number
  /** How long the oldest message that is due has been due; 0 when none is. */
  readonly oldestDueSeconds: number
  /** Destinations that have had messages, by the state of their circuit. */
  readonly circuits: Readonly<Record<string, number>>
  /** Messages in the queue of each destination that was asked for; counted up to 100,000. */
  readonly destinations: Readonly<Record<string, number>>
  /** Commands of callers' transactions that were refused in the last 15 minutes; counted up to 100,000. */
  readonly refusedCommands: number
}

export interface SharedReadings extends QueueCounts {
  /** How old the oldest fact is that a projection has not read; 0 when it has read all. */
  readonly projectionLagSeconds: Readonly<Record<string, number>>
  /** How long the transaction is open that keeps every reader of the log where it is; 0 without one. */
  readonly stallSeconds: number
  /** What is wrong with the installation, by reason; absent in what an older release read, like the next. */
  readonly troubles?: ReadonlyArray<string>
  /** How long the oldest transaction is open that holds back what was deleted, once it is a minute; 0 without one. */
  readonly oldestTransactionSeconds?: number
  /** Whether Posthaste's own broker is away; null while no process needs it. */
  readonly brokerAway: boolean | null
}

export interface PoolCount {
  readonly pool: string
  readonly inUse: number
  readonly idle: number
  readonly waiting: number
}

/**
 * Figures about the whole installation, which one process reads and all processes show.
 *
 * - `takeTurn` gives the turn to one process at a time, until `lease` has passed; the same process may take it again.
 * - `share` keeps the readings of the process that has the turn; `shared` answers the last ones, and what the store's
 *   clock says.
 */
export class Readings extends Context.Service<
  Readings,
  {
    readonly takeTurn: (holder: string, lease: Duration.Duration) => FromStore<boolean>
    readonly counts: (destinations: ReadonlyArray<DestinationId>) => FromStore<QueueCounts>
    readonly share: (holder: string, readings: SharedReadings) => FromStore<void>
    readonly shared: FromStore<{
      readonly readings: SharedReadings | null
      readonly ageSeconds: number
    }>
    /** The connections of this process. */
    readonly connections: () => ReadonlyArray<PoolCount>
  }
>()("posthaste/application/ports/Readings") {}
