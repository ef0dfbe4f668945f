import { Context, type DateTime, type Duration } from "effect"
import type { ErasureField } from "../../domain/erasure/facts.ts"
import type { EventId, MessageId, OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"

export interface Erasure {
  readonly id: string
  readonly orgId: OrgId
  readonly by: ErasureField
  readonly reason: string | null
  readonly messages: number
  readonly events: number
  readonly requestedAt: DateTime.Utc
  /** Null while it goes on. */
  readonly endedAt: DateTime.Utc | null
}

/** What is looked for: spellings of one recipient, one id, or name and value of one entry of the metadata. */
export type Sought = ReadonlyArray<string>

export interface ErasureJob extends Erasure {
  readonly sought: Sought
}

/**
 * Erasures of a person. `erase` takes what can name a person out of the rows of messages and events and deletes the forgettable parts of
 * their facts, and with them, in one transaction, keys, answers and reports of providers. It changes no fact. Jobs over many messages that
 * were for them, or for what is sought, forget whom they were for.
 *
 * A request and its end leave facts on the journal `erasure-<id>`, in the same transaction. They don't say who was sought, and the
 * job forgets it with its end.
 */
export class Erasures extends Context.Service<
  Erasures,
  {
    readonly open: (erasure: Pick<ErasureJob, "id" | "orgId" | "by" | "reason" | "sought">) => FromStore<Erasure>
    readonly get: (orgId: OrgId, id: string) => FromStore<Erasure | null>
    readonly list: (orgId: OrgId, page: PageRequest) => FromStore<Page<Erasure>>
    /** One that goes on, for as long as the lease; null when there is none. They take turns. */
    readonly take: (lease: Duration.Duration) => FromStore<ErasureJob | null>
    /** Some of what is left, by the lists: what was stored a moment ago may be missing. Alerts about a refused command are of it. */
    readonly find: (
      job: ErasureJob,
      limit: number
    ) => FromStore<{ readonly messages: ReadonlyArray<MessageId>; readonly events: ReadonlyArray<EventId> }>
    /**
     * Messages that have ended and whose bodies are erased, and events. False, and nothing is done, while a job that is for them has
     * not begun.
     */
    readonly erase: (
      job: ErasureJob,
      messages: ReadonlyArray<MessageId>,
      events: ReadonlyArray<EventId>
    ) => FromStore<boolean>
    /** Gives it back, to be taken again after the pause. */
    readonly back: (id: string, pause: Duration.Duration) => FromStore<void>
    /** Erases what became no message, too. False, and it goes on, while a job that is for the person has not begun. */
    readonly close: (job: ErasureJob) => FromStore<boolean>
  }
>()("posthaste/application/ports/Erasures") {}
