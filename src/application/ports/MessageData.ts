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

/** The data beside the facts of one message that can't be folded from the facts. */
export interface DataOfMessage {
  readonly messageId: MessageId
  readonly key: UsedKey | null
  readonly body: string | null
  /** By epoch and attempt. */
  readonly responses: ReadonlyArray<AttemptResponse>
}

/**
 * The data of messages that is no fact: bodies and answers, which may be erased, and idempotency keys. It is for moving
 * a store; every other caller uses `EventStore.append` and `Bodies`.
 *
 * `restore` adds missing data and changes none that exists, so it may be repeated.
 */
export class MessageData extends Context.Service<
  MessageData,
  {
    /** Messages without data are absent. */
    readonly load: (
      ids: ReadonlyArray<MessageId>
    ) => Effect.Effect<ReadonlyMap<MessageId, DataOfMessage>, StoreUnavailable>
    readonly restore: (dataOfMessages: ReadonlyArray<DataOfMessage>) => Effect.Effect<void, StoreUnavailable>
  }
>()("posthaste/application/ports/MessageData") {}
