import { Context, type DateTime, type Duration } from "effect"
import type { ErasureField } from "../../domain/erasure/facts.ts"
import type { EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

export interface Erasure {
  readonly id: string
  readonly orgId: OrgId
  readonly by: ErasureField
  readonly reason: string | null
  readonly messages: number
  readonly events: number
  readonly requestedAt: DateTime.Utc
  readonly endedAt: DateTime.Utc | null
}

/** Spellings of one recipient, one id, or name and value of one entry of the metadata. */
export type Sought = ReadonlyArray<string>

export interface ErasureJob extends Erasure {
  readonly sought: Sought
}

/**
 * Erasures of a person. `erase` takes all that can name a person out of rows, and deletes the forgettable parts of
 * facts, keys, answers and receipts, in one transaction. It changes no fact. Request and end are facts on
 * `erasure-<id>`, which never say who was sought; the job forgets it with its end.
 */
export class Erasures extends Context.Service<
  Erasures,
  {
    readonly open: (erasure: Pick<ErasureJob, "id" | "orgId" | "by" | "reason" | "sought">) => FromStore<Erasure>
    readonly get: (orgId: OrgId, id: string) => FromStore<Erasure | null>
    readonly list: (orgId: OrgId, page: PageRequest) => FromStore<Page<Erasure>>
    /** An open one, in turn, for the lease; null when there is none. */
    readonly take: (lease: Duration.Duration) => FromStore<ErasureJob | null>
    /** Some of what is left, by the lists, which lag; includes alerts about refused commands. */
    readonly find: (
      job: ErasureJob,
      limit: number
    ) => FromStore<{ readonly messages: ReadonlyArray<MessageId>; readonly events: ReadonlyArray<EventId> }>
    /**
     * Of messages that have ended and have no body, and of events. False, and nothing is done, while a job over them
     * has not begun.
     */
    readonly erase: (
      job: ErasureJob,
      messages: ReadonlyArray<MessageId>,
      events: ReadonlyArray<EventId>
    ) => FromStore<boolean>
    readonly back: (id: string, pause: Duration.Duration) => FromStore<void>
    /** Also erases what became no message. False, and it goes on, while a job over the person has not begun. */
    readonly close: (job: ErasureJob) => FromStore<boolean>
  }
>()("posthaste/application/ports/Erasures") {}
