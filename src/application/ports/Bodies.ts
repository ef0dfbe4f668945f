import { Context } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"
import type { AttemptResponse } from "./EventStore.ts"

/**
 * The texts that may be erased: bodies and the answers of destinations. They are written only by `EventStore.append`;
 * facts never hold them.
 */
export class Bodies extends Context.Service<
  Bodies,
  {
    /** The exact text to deliver; null when it was erased or never existed. */
    readonly load: (id: MessageId) => FromStore<string | null>
    /** By `epoch/attempt`. */
    readonly responses: (id: MessageId) => FromStore<ReadonlyMap<string, Pick<AttemptResponse, "body" | "headers">>>
    /** Removes body and responses. True when there was something to remove. */
    readonly erase: (id: MessageId) => FromStore<boolean>
  }
>()("posthaste/application/ports/Bodies") {}
