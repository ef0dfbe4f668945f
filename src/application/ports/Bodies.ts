import { Context } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { AttemptResponse } from "./EventStore.ts"
import type { FromStore } from "./errors.ts"

export type AttemptPlace = Pick<AttemptResponse, "epoch" | "attempt">

/** The first answers to a message's attempts, in their order, as many as a page may have bytes. */
export interface Responses {
  /** By `epoch/attempt`. */
  readonly answers: ReadonlyMap<string, Pick<AttemptResponse, "body" | "headers">>
  readonly end: AttemptPlace | null
}

/** The texts that may be erased: bodies and the answers of destinations. Only `EventStore.append` writes them. */
export class Bodies extends Context.Service<
  Bodies,
  {
    readonly load: (id: MessageId) => FromStore<string | null>
    readonly responses: (id: MessageId, from?: AttemptPlace) => FromStore<Responses>
    readonly erase: (id: MessageId) => FromStore<boolean>
  }
>()("posthaste/application/ports/Bodies") {}
