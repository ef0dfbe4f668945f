import { Context, type DateTime, type Duration } from "effect"
import type { BrokerReach } from "../../domain/condition/decider.ts"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { Topic } from "./Pulse.ts"

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
  /** Whether that broker is away; null while the process does not try to reach it. */
  readonly brokerAway: boolean | null
  /** The process's own clock minus the store's, in milliseconds; null until it was measured. */
  readonly clockOffsetMs: number | null
}

export interface Process extends Omit<Registration, "brokerAway"> {
  /** When it registered first, by the store's clock. */
  readonly since: DateTime.Utc
  readonly lastSeen: DateTime.Utc
  /** Seen within `SEEN_WITHIN_MS`. */
  readonly alive: boolean
}

/** How often a process says that it is there. */
export const BEAT_EVERY_MS = 2_000
/** A process that has been silent for longer counts as dead. */
export const SEEN_WITHIN_MS = 20_000
/** How long a process that vanished is still listed. */
export const KEPT_FOR_MS = 3_600_000
/** How long a process leads without another heartbeat. */
export const LEADS_FOR_MS = 10_000

/** The store's answer to a heartbeat. */
export interface Beat {
  readonly at: DateTime.Utc
  /** The process leads until `LEADS_FOR_MS` after it asked. */
  readonly leads: boolean
  /** The topics of which something is due before the next heartbeat. */
  readonly due: ReadonlyArray<Topic>
  /** The figures that the leader published last. */
  readonly figures: Figures | null
  readonly figuresAgeSeconds: number
}

/** What the queue holds, of all orgs together. */
export interface QueueCounts {
  /** Messages that wait for an attempt, by channel; as the lists know it. */
  readonly waiting: Readonly<Record<string, number>>
  /** Messages that can't be processed. */
  readonly parked: number
  /** How long the oldest message that is due has been due; 0 when none is. */
  readonly oldestDueSeconds: number
  /** Destinations that have had messages, by the state of their circuit. */
  readonly circuits: Readonly<Record<string, number>>
  /** Messages in the queue of each destination that was asked for; counted up to 100,000. */
  readonly destinations: Readonly<Record<string, number>>
  /** Commands of callers' transactions that were refused in the last 15 minutes; counted up to 100,000. */
  readonly refusedCommands: number
}

/** The figures of the whole installation. */
export interface Figures extends QueueCounts {
  /** How old the oldest fact is that a projection has not read; 0 when it has read all. */
  readonly projectionLagSeconds: Readonly<Record<string, number>>
  /** How long the transaction is open that keeps every reader of the log where it is; 0 without one. */
  readonly stallSeconds: number
  /** The reasons of the installation's troubles. */
  readonly troubles: ReadonlyArray<string>
  /** How long the oldest transaction is open that holds back what was deleted, once it is a minute; 0 without one. */
  readonly oldestTransactionSeconds: number
  /** Whether Posthaste's own broker is away; null while no process needs it. */
  readonly brokerAway: boolean | null
}

/** Something of the database that keeps what others have deleted from being cleared away. */
export interface OpenTransaction {
  readonly kind: "transaction" | "prepared" | "slot"
  /** Null where no process stands behind it. */
  readonly pid: number | null
  /** The name that its program gives itself; the name of a prepared transaction or of a replication slot. */
  readonly name: string
  readonly database: string | null
  /** Null of a slot: the database does not know. */
  readonly since: DateTime.Utc | null
}

export interface PoolCount {
  readonly pool: string
  readonly inUse: number
  readonly idle: number
  readonly waiting: number
}

/**
 * The processes of this Posthaste, and the installation as a whole.
 *
 * - A process beats again and again, and leaves when it stops in order; one that was killed is listed as not alive for an hour. All
 *   times are the store's.
 * - One process leads at a time: the first that beats once nobody leads, until its lease runs out or it leaves.
 * - The leader carries out maintenance and publishes figures. Nothing else decides by this: who may do what is settled by leases of
 *   batches and versions of streams.
 */
export class Processes extends Context.Service<
  Processes,
  {
    readonly beat: (process: Registration) => FromStore<Beat>
    readonly leave: (id: string) => FromStore<void>
    /** The longest running first. */
    readonly list: FromStore<ReadonlyArray<Process>>
    /** Null while no process tries to reach the broker. It is away while no process reaches it. */
    readonly brokerReach: FromStore<BrokerReach | null>
    /** The oldest transaction that has been open for longer than this. */
    readonly oldestTransaction: (longerThan: Duration.Duration) => FromStore<OpenTransaction | null>
    readonly counts: (destinations: ReadonlyArray<DestinationId>) => FromStore<QueueCounts>
    /** Has no effect where another process leads. */
    readonly publish: (leader: string, figures: Figures) => FromStore<void>
    /** The connections of this process to the store. */
    readonly connections: () => ReadonlyArray<PoolCount>
  }
>()("posthaste/application/ports/Processes") {}
