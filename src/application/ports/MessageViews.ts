import { Context, DateTime } from "effect"
import type { ConsentOf } from "../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId, ReplayId } from "../../domain/ids.ts"
import { type MessageStatus, statuses } from "../../domain/message/machine.ts"
import type { MessageView } from "../../domain/message/view.ts"
import type { DeadLetterFilter } from "../../domain/replay/facts.ts"
import type { StreamVersion } from "./EventStore.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"
import type { Step } from "./Projections.ts"

export interface MessageFilter {
  readonly status?: MessageStatus
  readonly channel?: ChannelName
  readonly to?: string
  readonly eventType?: string
  readonly dossierId?: string
  readonly correlationId?: string
  readonly createdAfter?: DateTime.Utc
  readonly createdBefore?: DateTime.Utc
  readonly updatedAfter?: DateTime.Utc
  readonly idempotencyKey?: string
  readonly metadata?: { readonly name: string; readonly value: string }
  /** Of a dead letter: the code of its last error. */
  readonly errorCode?: string
  /** A minimum, in the present epoch. */
  readonly attempts?: number
}

export interface Stats {
  readonly byStatus: Readonly<Record<MessageStatus, number>>
  readonly byChannel: Readonly<Record<ChannelName, Readonly<Record<MessageStatus, number>>>>
  /** The due time of the oldest overdue message. */
  readonly oldestDueAt: DateTime.Utc | null
}

type Counts = Readonly<Record<MessageStatus, number>>

export const countsOf = (
  found: ReadonlyArray<{ readonly channel: ChannelName; readonly status: MessageStatus; readonly count: number }>
): Pick<Stats, "byStatus" | "byChannel"> => {
  const counts = (rows: typeof found) =>
    Object.fromEntries(
      statuses.map((status) => [status, rows.reduce((sum, row) => (row.status === status ? sum + row.count : sum), 0)])
    ) as Counts
  const some = found.filter(({ count }) => count > 0)
  const channels = [...new Set(some.map(({ channel }) => channel))].toSorted()
  return {
    byStatus: counts(some),
    byChannel: Object.fromEntries(
      channels.map((channel) => [channel, counts(some.filter((row) => row.channel === channel))])
    )
  }
}

export interface DeadCount {
  readonly matched: number
  /** Those that may have been delivered, by a provider's receipt. */
  readonly contradicted: number
}

export interface Listed {
  readonly id: MessageId
  readonly version: StreamVersion
}

/** A row of the list. Nothing in it names a person. */
export const rowOf = (view: MessageView) => ({
  ...{ id: view.id, orgId: view.orgId, version: view.version, status: view.status, channel: view.channel },
  ...{ destination: view.destination, eventType: view.eventType, epoch: view.epoch, attempts: view.attempts },
  ...{ createdAt: view.createdAt, updatedAt: view.updatedAt, endedAt: view.endedAt },
  endsAt: view.status === "QUEUED" ? view.endsAt : null,
  dueAt: earlier(view.nextAttemptAt, view.expiresAt),
  errorCode: view.lastError?.code ?? null,
  replayId: view.replayId ?? null,
  dismissed: view.dismissed === true,
  contradicted: view.contradicted
})

const earlier = (one: DateTime.Utc | null, other: DateTime.Utc | null) =>
  one === null || other === null ? (one ?? other) : DateTime.min(one, other)

/**
 * The projection `messages`: the state of each message, for searching and counting; its content is in its stream
 * (listMessages.ts). Rebuildable, a little behind; readers see the live generation. `project` is gated by version, and
 * moves the position in the same transaction.
 */
export class MessageViews extends Context.Service<
  MessageViews,
  {
    /** Newest first; a page may be short (`Page`). Null: of all orgs. */
    readonly list: (orgId: OrgId | null, filter: MessageFilter, page: PageRequest) => FromStore<Page<Listed>>
    /** Dead letters that were not replayed since, the newest first. Null: of all orgs. */
    readonly deadLetters: (orgId: OrgId | null, filter: DeadLetterFilter, page: PageRequest) => FromStore<Page<Listed>>
    readonly countDeadLetters: (orgId: OrgId, filter: DeadLetterFilter) => FromStore<DeadCount>
    readonly ofReplay: (id: ReplayId) => FromStore<ReadonlyMap<MessageStatus, number>>
    /** Waiting messages of all orgs that should end by this time (`endsAt`), the longest over first. */
    readonly ending: (at: DateTime.Utc, page: PageRequest) => FromStore<Page<MessageId>>
    /** All messages of the dossier on that channel, by id: also those that the lists do not have yet. */
    readonly ofDossier: (of: ConsentOf, after: MessageId | null, limit: number) => FromStore<ReadonlyArray<MessageId>>
    readonly stats: (orgId: OrgId | null) => FromStore<Stats>
    /** Writes nothing and answers false when the run has left the step's `from`: another process projected. */
    readonly project: (step: Step, views: ReadonlyArray<MessageView>) => FromStore<boolean>
    readonly clear: (limit: number) => FromStore<number>
  }
>()("posthaste/application/ports/MessageViews") {}
