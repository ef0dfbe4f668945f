/**
 * One attempt, from the claim of its message to its settlement: start (`AttemptStarted` is committed before any byte
 * leaves), send, close the lane or destination if the answer asks for it, settle. Other writers (a cancellation, a
 * receipt, a worker that took the batch over) meet it at the version check: the loser decides again. After a crash only
 * the holder of the claim may close the attempt (recover.ts).
 */
import { Duration, Effect } from "effect"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import { laneWaitMs } from "../../domain/delivery/retry.ts"
import { whileUnavailable } from "../command.ts"
import { Bodies } from "../ports/Bodies.ts"
import type { Reply } from "../ports/Channels.ts"
import { type ClaimedMessage, Queue } from "../ports/Queue.ts"
import type { Watcher } from "../ports/Telemetry.ts"
import type { Tracer } from "../ports/Tracing.ts"
import { type Lease, whileHeld } from "./lease.ts"
import { Senders } from "./Senders.ts"
import { notSent, send } from "./send.ts"
import { settle } from "./settle.ts"
import { type Snapshot, start } from "./start.ts"
import type { CircuitWatch } from "./watchCircuits.ts"

export interface Task {
  readonly claimed: ClaimedMessage
  readonly lease: Lease
  /** In nanoseconds of the monotonic clock; later the message goes back to the queue. Null: no bound. */
  readonly startBy: bigint | null
}

export interface Watched {
  readonly circuits: CircuitWatch
  readonly telemetry: Watcher
  readonly tracing: Tracer
}

/** Called when the destination has answered, before the outcome is committed. */
type OnSent = (outcome: AttemptOutcome, isUnreported: boolean) => void

/** Ends when the message is settled or belongs to another worker. `GateClosed`: no attempt was started. */
export const deliver = Effect.fnUntraced(function* ({ claimed, lease }: Task, watched: Watched, onSent: OnSent) {
  // Read before the attempt is open: a store that does not answer must leave no doubt.
  const body = claimed.isBodyLarge ? yield* largeBody(claimed, lease) : claimed.body
  const started = yield* start(claimed, lease)
  if (started === "GateClosed") return started
  const reply = started === null ? null : yield* sendWatched(claimed, body, lease, started, watched)
  if (started === null || reply === null) {
    watched.circuits.observe(claimed, null)
    return
  }
  const isUnreported = watched.circuits.observe(claimed, reply.outcome)
  yield* disableIfGone(claimed, reply.outcome)
  onSent(reply.outcome, isUnreported)
  yield* deferLane(claimed, reply.outcome)
  const settled = yield* settle(claimed, lease, started, reply)
  if (settled === null) return
  const { messageId, queued, dueAt } = claimed
  const { epoch } = started.message.progress
  watched.telemetry.stored({ messageId, queued, epoch, dueAt }, settled.facts, settled.at)
})

const largeBody = ({ messageId }: ClaimedMessage, lease: Lease) =>
  Effect.flatMap(Bodies, (bodies) => whileUnavailable(bodies.load(messageId), whileHeld(lease).unavailable)).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(null))
  )

const taken: Reply = notSent("taken_over", "another worker has taken the message over")

const sendWatched = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  body: string | null,
  lease: Lease,
  { message }: Snapshot,
  { telemetry, tracing }: Watched
) {
  const { messageId, queued, dueAt } = claimed
  const { epoch, attempt } = message.progress
  const span = tracing.attempt({ messageId, queued, epoch, attempt, dueAt })
  telemetry.sendingBegan(queued.channel)
  const reply = yield* Effect.onExitPrimitive(
    send(claimed, body, lease, message, span?.traceparent),
    () => void telemetry.sendingEnded(queued.channel)
  )
  span?.end((reply ?? taken).outcome)
  return reply
})

/** The lane's wait between an answer that opens the circuit and the circuit's own open time. */
const UNTIL_OPEN_MS = 250

/** Ignores a failure of the store: the lane's next message gets the same answer. */
const deferLane = ({ lane }: ClaimedMessage, outcome: AttemptOutcome) => {
  if (outcome.type !== "Deferred" || outcome.scope === "message") return Effect.void
  const waitMs = outcome.scope === "lane" ? laneWaitMs(outcome.afterMs) : UNTIL_OPEN_MS
  return Effect.flatMap(Queue, (queue) => Effect.ignore(queue.deferLane(lane, Duration.millis(waitMs))))
}

const disableIfGone = ({ lane, queued }: ClaimedMessage, outcome: AttemptOutcome) =>
  outcome.type !== "Refused"
    ? Effect.void
    : Effect.flatMap(Senders, (senders) =>
        Effect.ignore(senders[queued.channel]?.disableIfGone?.(queued.orgId, lane, outcome) ?? Effect.void)
      )
