import { Context, type DateTime, type Duration } from "effect"
import type { BrokerReach } from "../../domain/condition/decider.ts"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"
import type { Topic } from "./Pulse.ts"

export interface Registration {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly roles: ReadonlyArray<string>
  readonly version: string
  /** True if it is to use Posthaste's own broker; with the role relay it does. */
  readonly broker: boolean
  readonly brokerAway: boolean | null
  readonly clockOffsetMs: number | null
}

export interface Process extends Omit<Registration, "brokerAway"> {
  /** By the store's clock. */
  readonly since: DateTime.Utc
  readonly lastSeen: DateTime.Utc
  readonly alive: boolean
}

export const BEAT_EVERY_MS = 2_000
/** A process that has been silent for longer counts as dead. */
export const SEEN_WITHIN_MS = 20_000
/** The time that a vanished process is listed. */
export const KEPT_FOR_MS = 3_600_000
/** The lease of the leader. */
export const LEADS_FOR_MS = 10_000

export interface Beat {
  readonly at: DateTime.Utc
  /** Valid until `LEADS_FOR_MS` after the question. */
  readonly leads: boolean
  readonly due: ReadonlyArray<Topic>
  readonly figures: Figures | null
  readonly figuresAgeSeconds: number
}

export interface QueueCounts {
  /** Messages that wait for an attempt, by channel; as the lists know it. */
  readonly waiting: Readonly<Record<string, number>>
  readonly parked: number
  readonly oldestDueSeconds: number
  readonly circuits: Readonly<Record<string, number>>
  /** Messages of each requested destination; counted up to 100,000. */
  readonly destinations: Readonly<Record<string, number>>
  /** Commands of callers' transactions that were refused in the last 15 minutes; counted up to 100,000. */
  readonly refusedCommands: number
}

export interface Figures extends QueueCounts {
  /** The age of the oldest fact that a projection has not read; 0 when it has read all. */
  readonly projectionLagSeconds: Readonly<Record<string, number>>
  readonly stallSeconds: number
  readonly troubles: ReadonlyArray<string>
  /** The age of the oldest transaction that keeps deleted rows from vacuum, from a minute on; else 0. */
  readonly oldestTransactionSeconds: number
  readonly brokerAway: boolean | null
}

/** A holder of deleted rows in the database. */
export interface OpenTransaction {
  readonly kind: "transaction" | "prepared" | "slot"
  readonly pid: number | null
  /** The name of the program, the prepared transaction or the replication slot. */
  readonly name: string
  readonly database: string | null
  readonly since: DateTime.Utc | null
}

export interface PoolCount {
  readonly pool: string
  readonly inUse: number
  readonly idle: number
  readonly waiting: number
}

/**
 * The processes of this installation.
 *
 * - A process beats, and leaves when it stops in order; a killed one is listed as not alive for an hour. All times
 *   are the store's.
 * - One process leads: the first that beats while there is no leader, until its lease runs out or it leaves. It
 *   carries out maintenance and publishes figures; leases of batches and versions of streams settle everything else.
 */
export class Processes extends Context.Service<
  Processes,
  {
    readonly beat: (process: Registration) => FromStore<Beat>
    readonly leave: (id: string) => FromStore<void>
    readonly list: FromStore<ReadonlyArray<Process>>
    /** Null while no process tries to reach the broker. It is away while no process reaches it. */
    readonly brokerReach: FromStore<BrokerReach | null>
    readonly oldestTransaction: (longerThan: Duration.Duration) => FromStore<OpenTransaction | null>
    readonly counts: (destinations: ReadonlyArray<DestinationId>) => FromStore<QueueCounts>
    /** Has no effect where another process leads. */
    readonly publish: (leader: string, figures: Figures) => FromStore<void>
    readonly connections: () => ReadonlyArray<PoolCount>
  }
>()("posthaste/application/ports/Processes") {}
