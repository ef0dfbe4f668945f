/**
 * What a provider tells us later about a message: found by our own data that came back with it, or by the name the
 * provider gave the message. The stream is loaded, the law decides, the facts are appended on top of what was read;
 * whoever lost the race for the next version reads and decides again. So a receipt that comes before our own commit
 * and one that comes after it end in the same state, and one that comes twice is recorded once.
 *
 * On `StoreUnavailable` it may or may not have been recorded. Telling it again is safe.
 */
import { DateTime, Effect, Result } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { decide, replay } from "../../domain/message/decider.ts"
import type { DeliveryError, ReceiptStatus } from "../../domain/message/facts.ts"
import { Actor } from "../actor.ts"
import { appendFreely, command, type Decision } from "../command.ts"
import { entryOf } from "../entry.ts"
import type { StoreUnavailable } from "../errors.ts"
import { MessageBusy } from "../messages/commandMessage.ts"
import { type Append, EventStore, type Stream } from "../ports/EventStore.ts"
import { ProviderMessages } from "../ports/ProviderMessages.ts"

export interface Receipt {
  readonly receipt: ReceiptStatus
  /** The next three are our own data that came back with it; null where none did. */
  readonly messageId: MessageId | null
  readonly epoch: number | null
  readonly attempt: number | null
  readonly providerMessageId: string | null
  readonly reportedAt: DateTime.Utc
  /** Why, when it says that the message failed. */
  readonly error: DeliveryError | null
}

/**
 * `repeated`: it was recorded before. `unknown`: no message is called that (yet: if our answer is still on its way,
 * telling it again later will find it). `foreign`: the message is another org's; nothing was done.
 */
export type ReceiptAnswer = "recorded" | "repeated" | "unknown" | "foreign"

const TRIES = 10

export const recordReceipt = Effect.fn("recordReceipt")(function* (
  orgId: OrgId,
  receipt: Receipt
): Effect.fn.Return<ReceiptAnswer, StoreUnavailable | MessageBusy, EventStore | ProviderMessages> {
  const { messageId, providerMessageId } = receipt
  const named = messageId === null ? "unknown" : yield* recordFor(orgId, messageId, receipt)
  if (named !== "unknown" || providerMessageId === null) return named
  let answer: ReceiptAnswer = "unknown"
  for (const id of yield* (yield* ProviderMessages).find(providerMessageId)) {
    answer = yield* recordFor(orgId, id, receipt)
    if (answer !== "foreign") return answer
  }
  return answer
})

const recordFor = (orgId: OrgId, id: MessageId, { receipt, ...details }: Receipt) =>
  command(
    {
      load: Effect.flatMap(EventStore, (store) => store.load(id)),
      decide: Effect.fnUntraced(function* (stream: Stream): Effect.fn.Return<Decision<Append, ReceiptAnswer>> {
        const owner = ownerOf(stream)
        if (owner !== orgId) return { entry: null, answer: owner === null ? "unknown" : "foreign" }
        const message = replay(stream.facts.map(({ fact }) => fact))
        const facts = Result.getOrThrow(decide(message, { type: "RecordReceipt", receipt, ...details }))
        if (facts.length === 0) return { entry: null, answer: "repeated" }
        const { entry } = entryOf(id, message, stream.version, facts, yield* DateTime.now, { actor: yield* Actor })
        return { entry, answer: "recorded" }
      }),
      append: appendFreely
    },
    { tries: TRIES }
  ).pipe(Effect.catchTag("Overtaken", () => Effect.fail(new MessageBusy({ id }))))

const ownerOf = ({ facts: [first] }: Stream): OrgId | null =>
  first?.fact.type === "MessageQueued" ? first.fact.orgId : null
