/** Claims due messages, as many as the pools have room for, and offers them lane by lane. */
import { Clock, DateTime, Duration, Effect } from "effect"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import { streamOf } from "../../domain/streams.ts"
import { storePauses } from "../command.ts"
import { park } from "../park.ts"
import { type Claim, Queue } from "../ports/Queue.ts"
import type { Task } from "./deliver.ts"
import { Lease } from "./lease.ts"
import type { Pools } from "./pools.ts"
import { type Held, release } from "./putBack.ts"
import { Senders } from "./Senders.ts"

const CLAIM_MAX = 500
const LANE_FIRST = 16
/** For a heartbeat that fails: else it rings. */
const POLL_FLOOR = Duration.seconds(2)
/** For a due message that was not handed out: another worker claims from its lane, or this one has enough of it. */
const POLL_SOON = Duration.millis(20)
const NANOS_PER_MILLI = 1_000_000n

interface Feeding extends Held {
  readonly worker: string
  readonly lease: Duration.Duration
  readonly pools: Pools<Task>
  readonly onLeaseLost: () => void
}

export const feed = (feeding: Feeding) =>
  Effect.flatMap(
    Effect.suspend(() => claimOnce(feeding)),
    (claimed) => (claimed ? Effect.void : rest(feeding))
  )

/** True when a batch was claimed. No stop comes between the claim and its bookkeeping. */
const claimOnce = Effect.fnUntraced(function* (feeding: Feeding) {
  const { pools, circuits } = feeding
  const clock = yield* Clock.Clock
  const queue = yield* Queue
  const { lanes: room, fullOrgs, left } = pools.room()
  if (left < CLAIM_MAX / 2) return false
  const askedAt = clock.monotonicTimeNanosUnsafe()
  const claim = yield* queue.claim({
    worker: feeding.worker,
    limit: Math.min(CLAIM_MAX, left),
    perLane: LANE_FIRST,
    ...{ room, fullOrgs },
    lease: feeding.lease
  })
  if (claim === null) return false
  const lease = new Lease(claim.batch, claim.messages.length, feeding.lease, askedAt, feeding.onLeaseLost)
  feeding.leases.add(lease)
  circuits.claimed(claim)
  yield* parkUnreadable(lease, claim, feeding)
  const lanes = [...Map.groupBy(claim.messages, (message) => message.lane)]
  const capacities = yield* Effect.forEach(
    lanes,
    ([lane, [first]]) => capacityOf(first!.queued.channel, first!.queued.orgId, lane),
    { concurrency: "unbounded" }
  )
  for (const [index, [lane, messages]] of lanes.entries()) {
    const { terms, queued } = messages[0]!
    const startBy = terms.startWithinMs === null ? null : askedAt + BigInt(terms.startWithinMs) * NANOS_PER_MILLI
    pools.offer({
      ...{ lane, org: queued.orgId, capacity: capacities[index]! },
      ...{ limit: terms.inFlightMax, isRateLimited: terms.isRateLimited },
      items: messages.map((claimed) => ({ claimed, lease, startBy }))
    })
  }
  return true
}, Effect.uninterruptible)

/** Every claimed message must reach an actor: an unreadable destination then fails there, alone. */
const capacityOf = Effect.fnUntraced(function* (channel: ChannelName, orgId: OrgId, lane: DestinationId) {
  const capacity = (yield* Senders)[channel]?.capacity(orgId, lane) ?? Effect.succeed(1)
  return yield* Effect.catchDefect(capacity, (defect) =>
    Effect.logError(`destination ${lane} can't be asked how much it takes`, defect).pipe(Effect.as(1))
  )
})

const rest = Effect.fnUntraced(function* ({ pools }: Feeding) {
  const queue = yield* Queue
  const now = yield* DateTime.now
  const due = yield* queue.nextDueAt
  const until = due === null ? POLL_FLOOR : Duration.max(DateTime.distance(now, due), POLL_SOON)
  yield* Effect.raceFirst(queue.awaitWork(Duration.min(until, POLL_FLOOR)), pools.wantsMore)
})

/** Parks messages that the claim could not read. A batch that can't be parked is left to the next worker. */
const parkUnreadable = Effect.fnUntraced(function* (
  lease: Lease,
  { messages, unreadable = [] }: Claim,
  { circuits, leases }: Held
) {
  if (unreadable.length === 0) return
  for (const message of unreadable) circuits.observe(message, null)
  yield* park(new Map(unreadable.map(({ messageId, defect }) => [streamOf(messageId), defect]))).pipe(
    Effect.retry({ schedule: storePauses, times: 3 }),
    Effect.catch(() => Effect.sync(() => lease.lose()))
  )
  if (messages.length === 0) yield* release(lease, leases)
})
