import { Context } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import type { FromStore } from "./errors.ts"

/**
 * The messages with a provider's name, from the commit of the fact that told it. Providers may repeat a name: the
 * caller picks the message of its org.
 */
export class ProviderMessages extends Context.Service<
  ProviderMessages,
  { readonly find: (providerMessageId: string) => FromStore<ReadonlyArray<MessageId>> }
>()("posthaste/application/ports/ProviderMessages") {}
