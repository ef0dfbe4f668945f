import { Context } from "effect"
import type { EventId, MessageId } from "../../domain/ids.ts"
import type { AttemptResponse, UsedKey } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

export interface DataOfMessage {
  readonly messageId: MessageId
  /** JSON text of its whole first fact; null where only its key is there. */
  readonly queued: string | null
  readonly key: UsedKey | null
  readonly body: string | null
  readonly bodyOf: EventId | null
  /** Each with the version of its fact, in their order. */
  readonly responses: ReadonlyArray<AttemptResponse & { readonly version: number }>
}

export interface DataOfEvent {
  readonly eventId: EventId
  readonly key: UsedKey | null
  readonly body: string | null
}

/**
 * The data of messages and events that is no fact, for moving a store. `restore` adds missing data and changes none
 * that exists, so it may be repeated.
 */
export class MessageData extends Context.Service<
  MessageData,
  {
    readonly load: (ids: ReadonlyArray<MessageId>) => FromStore<ReadonlyMap<MessageId, DataOfMessage>>
    readonly restore: (dataOfMessages: ReadonlyArray<DataOfMessage>) => FromStore<void>
    readonly loadEvents: (ids: ReadonlyArray<EventId>) => FromStore<ReadonlyMap<EventId, DataOfEvent>>
    readonly restoreEvents: (dataOfEvents: ReadonlyArray<DataOfEvent>) => FromStore<void>
  }
>()("posthaste/application/ports/MessageData") {}
