/**
 * Records a provider's receipt with its message, found by the returned callback data or by the provider's id. The order
 * of receipt and own commit does not matter, a repeat is recorded once, and a repeat after `StoreUnavailable` is safe.
 */
import { DateTime, Effect, Result } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { decide, replay } from "../../domain/message/decider.ts"
import type { MessageFact, MessageQueued } from "../../domain/message/facts.ts"
import { appendFreely, command, type Decision } from "../command.ts"
import { CommandedBy } from "../commandedBy.ts"
import { entryOf } from "../entry.ts"
import { MessageBusy } from "../messages/commandMessage.ts"
import { type Append, EventStore, type Stream } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { ProviderMessages } from "../ports/ProviderMessages.ts"
import { type Subject, Telemetry } from "../ports/Telemetry.ts"
import type { Receipt } from "../ports/WhatsAppReceipts.ts"

/**
 * `repeated`: recorded before. `unknown`: no such message, or the provider's id is not stored yet. `foreign`: the
 * message belongs to another org.
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

interface Recorded {
  readonly subject: Subject
  readonly facts: ReadonlyArray<MessageFact>
  readonly at: DateTime.Utc
}

const recordFor = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, { receipt, ...details }: Receipt) {
  const recorded = yield* command(
    {
      load: Effect.flatMap(EventStore, (store) => store.load(id)),
      decide: Effect.fnUntraced(function* (
        stream: Stream
      ): Effect.fn.Return<Decision<Append, Recorded | Exclude<ReceiptAnswer, "recorded">>> {
        const owner = ownerOf(stream)
        if (owner !== orgId) return { entry: null, answer: owner === null ? "unknown" : "foreign" }
        const message = replay(stream.facts.map(({ fact }) => fact))
        const facts = Result.getOrThrow(decide(message, { type: "RecordReceipt", receipt, ...details }))
        if (facts.length === 0) return { entry: null, answer: "repeated" }
        const at = yield* DateTime.now
        const { entry } = entryOf(id, message, stream.version, facts, at, { actor: yield* CommandedBy })
        const queued = stream.facts[0]!.fact as MessageQueued
        const subject = { messageId: id, queued, epoch: message.progress.epoch, dueAt: lastDueAt(stream) }
        return { entry, answer: { subject, facts, at } }
      }),
      append: appendFreely
    },
    { tries: TRIES }
  ).pipe(Effect.catchTag("Overtaken", () => Effect.fail(new MessageBusy({ id }))))
  if (typeof recorded === "string") return recorded
  ;(yield* Telemetry).stored(recorded.subject, recorded.facts, recorded.at)
  return "recorded"
})

const lastDueAt = ({ facts }: Stream): DateTime.Utc | null => {
  const due = facts.flatMap(({ fact }) => {
    switch (fact.type) {
      case "MessageQueued":
      case "AttemptDeferred":
        return [fact.dueAt]
      case "AttemptFailed":
      case "AttemptAbandoned":
        return fact.retryAt === null ? [] : [fact.retryAt]
      case "MessageReplayed":
        return [fact.replayedAt]
      default:
        return []
    }
  })
  return due.at(-1) ?? null
}

const ownerOf = ({ facts: [first] }: Stream): OrgId | null =>
  first?.fact.type === "MessageQueued" ? first.fact.orgId : null
