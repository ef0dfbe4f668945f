/**
 * Makes one entry of an append from decided facts. The message is evolved fact by fact, so an entry holds only lawful
 * history. It carries the queue change of the last fact that has one.
 */
import type { DateTime } from "effect"
import type { MessageId } from "../domain/ids.ts"
import { evolve } from "../domain/message/decider.ts"
import type { MessageFact } from "../domain/message/facts.ts"
import { type QueueChange, queueChange } from "../domain/message/queueChange.ts"
import type { Message } from "../domain/message/transitions.ts"
import type { Append } from "./ports/EventStore.ts"

type Extra = Partial<Pick<Append, "actor" | "fence" | "gate" | "opening" | "response">>

export const entryOf = (
  id: MessageId,
  before: Message,
  expected: number,
  facts: ReadonlyArray<MessageFact>,
  at: DateTime.Utc,
  { actor = null, fence = null, gate = null, opening = null, response = null }: Extra = {}
): { readonly entry: Append; readonly after: Message } => {
  let message = before
  let queue: QueueChange | null = null
  for (const fact of facts) {
    const after = evolve(message, fact)
    queue = queueChange(message, fact, after) ?? queue
    message = after
  }
  return { entry: { messageId: id, expected, facts, at, actor, queue, fence, gate, opening, response }, after: message }
}
