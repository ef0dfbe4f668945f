import { Context, type Effect } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { StoreUnavailable } from "../errors.ts"

/**
 * Which messages a provider calls by a name: the answer to a send told it, or a receipt did. They are found from
 * the very commit of the fact that tells it. A name belongs to one message as far as its provider keeps its word;
 * whoever asks knows which org it asks for, and looks.
 */
export class ProviderMessages extends Context.Service<
  ProviderMessages,
  {
    /** Empty for a name that no provider gave. */
    readonly find: (providerMessageId: string) => Effect.Effect<ReadonlyArray<MessageId>, StoreUnavailable>
  }
>()("posthaste/application/ports/ProviderMessages") {}
