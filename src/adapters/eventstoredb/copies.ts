/** Facts that are kept beside the queue too (see schema/0009_event_store.sql and PostgresProviderMessages.ts). */
import type { MessageFact } from "../../domain/message/facts.ts"
import type { RecordedFact } from "../../domain/recorded.ts"

export const isCopied = (fact: MessageFact): boolean =>
  fact.type === "MessageQueued" || ("providerMessageId" in fact && fact.providerMessageId !== null)

/** The same for a fact that was not decoded: its JSON may be of any shape. */
export const isCopiedAsStored = ({ name, data }: RecordedFact): boolean =>
  name.startsWith("MessageQueued@") ||
  (JSON.parse(data) as { providerMessageId?: unknown } | null)?.providerMessageId != null
