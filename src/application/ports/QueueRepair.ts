import { Context, type Duration } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { Place } from "../../domain/message/place.ts"
import type { FromStore } from "../errors.ts"
import type { Position, StreamVersion } from "./EventStore.ts"

/** Where the facts of a message put it, up to `version`. */
export interface Placed {
  readonly messageId: MessageId
  readonly version: StreamVersion
  /** Of the last of these facts. */
  readonly position: Position
  readonly place: Place
}

/** `changed`: a fact was added meanwhile, and nothing was done. `fine`: it is where it should be. */
export type Verdict = "mended" | "fine" | "changed"

/** `next` is where to go on; null: that was the last. */
export interface Looked {
  readonly mended: number
  readonly next: string | null
}

/**
 * Finds what is not where it should be in the queue, and puts it there. Each call looks at a bounded stretch and is safe beside
 * everything that moves messages, whoever calls it how often.
 *
 * - `takeTurn` gives the turn to one process at a time, until `lease` has passed; the same process may take it again.
 * - `lost` looks at the next messages that have not ended, as the list knows them, and answers those that are in no lane, behind
 *   nobody in a line, in no batch and not set aside. One that is on its way may be among them: `stillLost` answers later which of them are so still.
 * - `mendLines` gives the heads of lines to the queue that nobody gave, `mendLanes` wakes lanes that would sleep past a message.
 * - `dropStrangers` removes rows of the queue that belong to messages without a stream.
 * - `mend` puts messages where their facts say, in the queue or out of it, and ends that they are set aside. With `strays` it also
 *   looks for second rows of messages that have their place.
 */
export class QueueRepair extends Context.Service<
  QueueRepair,
  {
    readonly takeTurn: (holder: string, lease: Duration.Duration) => FromStore<boolean>
    /** `after` is the `next` of the call before; null begins. */
    readonly lost: (
      after: string | null,
      limit: number
    ) => FromStore<{ readonly ids: ReadonlyArray<MessageId>; readonly next: string | null }>
    readonly stillLost: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlyArray<MessageId>>
    readonly mendLines: (after: string | null, limit: number) => FromStore<Looked>
    readonly mendLanes: (after: string | null, limit: number) => FromStore<Looked>
    readonly dropStrangers: (ids: ReadonlyArray<MessageId>) => FromStore<void>
    readonly mend: (
      messages: ReadonlyArray<Placed>,
      options?: { readonly strays: boolean }
    ) => FromStore<ReadonlyMap<MessageId, Verdict>>
  }
>()("posthaste/application/ports/QueueRepair") {}
