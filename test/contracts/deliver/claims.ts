/** How the contract suites ask for work. */
import { Duration, Effect } from "effect"
import { type ClaimRequest, Queue } from "../../../src/application/ports/Queue.ts"

export const minute = Duration.minutes(1)

/** Takes whatever is due, without limits. */
export const asWorker = (worker: string, lease: Duration.Input = minute): ClaimRequest => ({
  worker,
  limit: 1_000,
  perLane: 1_000,
  room: new Map(),
  fullOrgs: new Set<never>(),
  lease: Duration.fromInputUnsafe(lease)
})

/** The ids of all that is due, in the order it was handed out. */
export const claimAll = Effect.gen(function* () {
  const claim = yield* (yield* Queue).claim(asWorker("all"))
  return claim === null ? [] : claim.messages.map((message) => message.messageId)
})
