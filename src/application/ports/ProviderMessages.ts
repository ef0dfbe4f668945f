import { Context } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/**
 * The messages with a provider's name, which the answer to an attempt or a receipt told. A name is found from the
 * commit of its fact on. A provider should give each name once but may not keep to it: the caller picks the message of
 * its org.
 */
export class ProviderMessages extends Context.Service<
  ProviderMessages,
  {
    /** Empty for a name that no provider gave. */
    readonly find: (providerMessageId: string) => FromStore<ReadonlyArray<MessageId>>
  }
>()("posthaste/application/ports/ProviderMessages") {}
