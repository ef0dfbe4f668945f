import { Context, type Effect } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"
import type { AttemptResponse } from "./EventStore.ts"

/** The idempotency key that a message used up. */
export interface UsedKey {
  readonly orgId: OrgId
  readonly key: string
  readonly requestHash: string
}

/** What is kept beside the facts of one message and can't be folded from them. */
export interface DataOfMessage {
  readonly messageId: MessageId
  readonly key: UsedKey | null
  readonly body: string | null
  /** By epoch and attempt. */
  readonly responses: ReadonlyArray<AttemptResponse>
}

/**
 * What belongs to messages and is no fact: bodies and answers, which may be erased, and idempotency keys. For
 * whoever moves a store; the everyday ways are `EventStore.append` and `Bodies`.
 *
 * `restore` adds what is missing and changes nothing that is there, so it may be repeated.
 */
export class MessageData extends Context.Service<
  MessageData,
  {
    /** Messages that nothing belongs to are absent. */
    readonly load: (
      ids: ReadonlyArray<MessageId>
    ) => Effect.Effect<ReadonlyMap<MessageId, DataOfMessage>, StoreUnavailable>
    readonly restore: (dataOfMessages: ReadonlyArray<DataOfMessage>) => Effect.Effect<void, StoreUnavailable>
  }
>()("posthaste/application/ports/MessageData") {}
