import { Clock, Effect, Random, Result } from "effect"
import { decide } from "../../domain/message/decider.ts"
import { appendToMessage, command } from "../command.ts"
import { entryOf } from "../entry.ts"
import type { Reply } from "../ports/Channels.ts"
import type { AttemptResponse } from "../ports/EventStore.ts"
import type { ClaimedMessage } from "../ports/Queue.ts"
import { type Lease, unlessLost, whileHeld } from "./lease.ts"
import { isOpen, load, nothing, nowBy, type Snapshot } from "./start.ts"

export const settle = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  lease: Lease,
  started: Snapshot,
  { outcome, exchange, responseBody, responseHeaders }: Reply
) {
  const { epoch, attempt, doubts } = started.message.progress
  // An attempt that does not count leaves its number, and the place of its answer, to the next.
  const body = responseBody ?? ""
  const isKept = (body !== "" || responseHeaders !== undefined) && outcome.type !== "Deferred"
  const response: AttemptResponse | null = isKept ? { epoch, attempt, body, headers: responseHeaders ?? null } : null
  const die = (yield* Random.Random).nextDoubleUnsafe()
  const clock = yield* Clock.Clock
  const decideSettlement = ({ message, version, startedAt }: Snapshot) => {
    if (lease.lost) return nothing
    // This settlement was stored and its answer lost, or another writer settled the attempt.
    if (startedAt !== started.startedAt || !isOpen(message.progress.phase)) return nothing
    // A doubt other than the claim's is our own.
    if (message.progress.doubts !== doubts) return nothing
    const now = nowBy(clock)
    const decided = decide(message, { type: "SettleAttempt", attempt, outcome, exchange: exchange ?? null, now, die })
    if (Result.isFailure(decided)) return nothing
    const { entry } = entryOf(claimed.messageId, message, version, decided.success, now, {
      fence: lease.batch,
      // Erased during the attempt: the answer may hold erased data.
      response: message.progress.erased ? null : response
    })
    return { entry, answer: { facts: decided.success, at: now } }
  }
  const result = yield* unlessLost(
    command(
      {
        known: started,
        load: load(claimed),
        decide: (snapshot) => Effect.succeed(decideSettlement(snapshot)),
        append: appendToMessage
      },
      whileHeld(lease)
    )
  )
  if (result === null || !("type" in result)) return result
  if (result.type === "FenceLost") lease.lose()
  return null
})
