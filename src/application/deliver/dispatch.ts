/**
 * The worker: a feeder claims due messages ahead of a pool of actors, and each actor owns one message at a
 * time from claim to settlement.
 *
 *   feeder     queue.claim ─▶ inbox (lane by lane, within each lane's capacity)
 *   actors     inbox ─▶ deliver: start, send, settle ─▶ release the batch with its last message
 *   keeper     renews this worker's leases and takes over batches whose worker went away
 *
 * Closing its scope is a graceful stop: nothing new is claimed or started, what is under way gets `grace` to
 * settle, the rest is abandoned visibly, and no lease is left.
 */
import { Clock, DateTime, Duration, Effect, Fiber, Schedule } from "effect"
import { type CircuitPolicy, circuitDefaults } from "../../domain/circuit/policy.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import { background } from "../background.ts"
import { storePauses } from "../command.ts"
import { type AbandonedMessage, type ClaimedMessage, type ClaimTerms, Queue } from "../ports/Queue.ts"
import { deliver } from "./deliver.ts"
import { type HeldBatch, type HeldBatches, makeHeldBatches } from "./heldBatches.ts"
import { recover, recoverBatch } from "./recover.ts"
import { Senders } from "./Senders.ts"
import { makeWaitingRoom, type WaitingRoom, WINDOW_FIRST } from "./waitingRoom.ts"
import { type CircuitWatch, watchCircuits } from "./watchCircuits.ts"

export interface WorkerSettings {
  /** Names this worker's leases; unique among living processes. */
  readonly worker: string
  /** Messages under way at once in this process. */
  readonly concurrency: number
  /** How long a worker that has gone silent keeps its messages. */
  readonly lease: Duration.Duration
  /** How long a graceful stop waits for what is under way. */
  readonly grace: Duration.Duration
  readonly circuit?: CircuitPolicy
}

interface Task {
  readonly claimed: ClaimedMessage
  readonly heldBatch: HeldBatch
  /** In nanoseconds of the monotonic clock; later it goes back instead. Null: no hurry. */
  readonly startBy: bigint | null
}

const NANOS_PER_MILLI = 1_000_000n
const CLAIM_MAX = 500
const POLL_FLOOR = Duration.seconds(1)
/** Something is due but was not handed out: somebody else is visiting its lane, or we have enough of it. */
const POLL_SOON = Duration.millis(20)
const STORE_PAUSE = Duration.millis(250)
/** A message we can't process because of a bug in Posthaste: kept, shown in the log, tried again later. */
const DEFECT_PAUSE = Duration.minutes(1)

/** Starts the worker; it runs until the scope closes. */
export const dispatch = Effect.fnUntraced(function* (settings: WorkerSettings) {
  const heldBatches = makeHeldBatches(settings.lease)
  const waitingRoom = makeWaitingRoom<Task>(settings.concurrency)
  const circuits = watchCircuits(settings.circuit ?? circuitDefaults, (lane, { status, generation, inFlightMax }) => {
    if (status === "CLOSED") return Effect.sync(() => waitingRoom.limit(lane, inFlightMax))
    return Effect.suspend(() =>
      putBack(
        waitingRoom.withdraw(lane, ({ claimed }) => claimed.terms.generation < generation),
        heldBatches
      )
    )
  })

  const keeper = yield* Effect.forkDetach(keep(settings, heldBatches))
  const watcher = yield* Effect.forkDetach(circuits.run)
  const actors = yield* Effect.forEach(Array.from({ length: settings.concurrency }), () =>
    Effect.forkDetach(act(waitingRoom, heldBatches, circuits))
  )
  const feeder = yield* Effect.forkDetach(feed(settings, waitingRoom, heldBatches, circuits))

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(feeder)
      // A store that does not answer must not hold up a stop: what could not be handed back waits for its lease.
      yield* Effect.forEach(waitingRoom.drain(), ({ claimed, heldBatch }) =>
        finish(heldBatch, heldBatches, claimed)
      ).pipe(Effect.andThen(untilEmpty(heldBatches)), Effect.timeoutOption(settings.grace))
      yield* Fiber.interruptAll(actors)
      yield* Fiber.interrupt(watcher)
      yield* Effect.forEach(heldBatches.all(), handBack, { concurrency: 4, discard: true })
      yield* circuits.flush
      yield* Fiber.interrupt(keeper)
    })
  )
})

const untilEmpty = (heldBatches: HeldBatches) =>
  Effect.suspend(() => Effect.succeed(heldBatches.all().length === 0)).pipe(
    Effect.repeat({ until: (empty) => empty, schedule: Schedule.spaced("20 millis") })
  )

/** What a stopping worker still holds is settled as if it had died, only at once. */
const handBack = (heldBatch: HeldBatch) =>
  heldBatch.lost || heldBatch.unanswered > 0
    ? Effect.void
    : recoverBatch(heldBatch.batch, heldBatch.messages, "the worker was stopped").pipe(
        Effect.retry({ times: 5, schedule: Schedule.exponential("100 millis") }),
        Effect.catch((error) => Effect.logError("a batch could not be handed back; its lease will run out", error))
      )

// ---------------------------------------------------------------------------------------------- feeder

const feed = Effect.fnUntraced(function* (
  settings: WorkerSettings,
  waitingRoom: WaitingRoom<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch
) {
  const clock = yield* Clock.Clock
  const queue = yield* Queue
  const channels = yield* Senders
  const capacity = (channel: ChannelName, orgId: OrgId, lane: DestinationId) =>
    (channels[channel]?.capacity(orgId, lane) ?? Effect.succeed(1)).pipe(
      // What was claimed must reach an actor whatever is wrong with its destination: one that can't be read, such as
      // one whose secret does not open, then fails there, alone.
      Effect.catchDefect((defect) =>
        Effect.logError(`destination ${lane} can't be asked how much it takes`, defect).pipe(Effect.as(1))
      )
    )

  /** True when something was claimed. A stop may not come between the claim and our knowing of it. */
  const claimOnce = Effect.fnUntraced(function* () {
    const limit = CLAIM_MAX - waitingRoom.startable()
    if (limit < CLAIM_MAX / 2) return false
    const askedAt = clock.monotonicTimeNanosUnsafe()
    const claim = yield* queue.claim({
      worker: settings.worker,
      limit,
      perLane: WINDOW_FIRST,
      room: waitingRoom.room(),
      lease: settings.lease
    })
    if (claim === null) return false
    const heldBatch = heldBatches.add(claim)
    circuits.claimed(claim)
    const lanes = [...Map.groupBy(claim.messages, (message) => message.lane)]
    // All at once: what was handed out by a rate limit must start soon, whoever else was handed out with it.
    const capacities = yield* Effect.forEach(
      lanes,
      ([lane, [first]]) => capacity(first!.queued.channel, first!.queued.orgId, lane),
      { concurrency: "unbounded" }
    )
    const offeredAt = clock.monotonicTimeNanosUnsafe()
    for (const [index, [lane, messages]] of lanes.entries()) {
      const { terms } = messages[0]!
      const startBy = startByOf(terms, askedAt, offeredAt)
      waitingRoom.offer(
        lane,
        capacities[index]!,
        messages.map((claimed) => ({ claimed, heldBatch, startBy })),
        terms.inFlightMax
      )
    }
    return true
  }, Effect.uninterruptible)

  const rest = Effect.fnUntraced(function* () {
    const now = yield* DateTime.now
    const due = yield* queue.nextDueAt
    const until = due === null ? POLL_FLOOR : Duration.max(DateTime.distance(now, due), POLL_SOON)
    yield* Effect.raceFirst(queue.awaitWork(Duration.min(until, POLL_FLOOR)), waitingRoom.hungry)
  })

  const step = Effect.flatMap(Effect.suspend(claimOnce), (claimed) => (claimed ? Effect.void : rest()))
  return yield* background("claiming messages", step, STORE_PAUSE)
})

/**
 * A probe's permit runs from the claim. What a rate limit handed out gets half its time also after a claim that took
 * all of it: a store that is slow to answer must not mean that nothing ever starts.
 */
const startByOf = ({ circuitMode, startWithinMs }: ClaimTerms, askedAt: bigint, offeredAt: bigint): bigint | null => {
  if (startWithinMs === null) return null
  const fresh = BigInt(startWithinMs) * NANOS_PER_MILLI
  const late = offeredAt - askedAt - fresh / 2n
  return askedAt + fresh + (circuitMode === "probe" || late < 0n ? 0n : late)
}

// ---------------------------------------------------------------------------------------------- actors

const act = Effect.fnUntraced(function* (
  waitingRoom: WaitingRoom<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch
) {
  for (;;) {
    const task = yield* waitingRoom.take
    const { claimed, heldBatch } = task
    let underWay = true
    /** What else we hold of a lane whose destination wants nothing now. */
    let others: ReadonlyArray<Task> = []
    const sent = (outcome: AttemptOutcome | null = null) => {
      if (outcome?.type === "Deferred" && outcome.scope !== "message")
        others = waitingRoom.withdraw(claimed.lane, () => true)
      if (underWay) waitingRoom.ended(claimed.lane)
      underWay = false
    }
    if (task.startBy !== null && (yield* isPast(task.startBy))) {
      circuits.observe(claimed, null)
      sent()
      yield* putBack([task], heldBatches)
      continue
    }
    const later = yield* Effect.catchDefect(deliver(claimed, heldBatch, circuits, sent), (defect) =>
      tryLater(claimed, defect)
    )
    sent()
    if (later === "GateClosed") {
      // What else we hold of the lane was claimed under the same conditions.
      const { generation } = claimed.terms
      others = waitingRoom.withdraw(claimed.lane, (other) => other.claimed.terms.generation === generation)
      yield* putBack([task, ...others], heldBatches)
    } else {
      yield* putBack(others, heldBatches)
      yield* finish(heldBatch, heldBatches, later ?? null)
    }
    // With a store and a channel that answer at once, an actor would never let anybody else hear what it saw.
    yield* Effect.yieldNow
  }
})

const tryLater = Effect.fnUntraced(function* (claimed: ClaimedMessage, defect: unknown) {
  yield* Effect.logError(`message ${claimed.messageId} can't be processed`, defect)
  return { ...claimed, dueAt: DateTime.addDuration(yield* DateTime.now, DEFECT_PAUSE) }
})

const isPast = (moment: bigint) => Effect.map(Clock.Clock, (clock) => clock.monotonicTimeNanosUnsafe() > moment)

/**
 * What may not be sent now goes back to wait as it was, at once: no attempt is lost by it, and a batch-mate
 * that takes its time does not hold it up.
 */
const putBack = Effect.fnUntraced(function* (tasks: ReadonlyArray<Task>, heldBatches: HeldBatches) {
  const queue = yield* Queue
  for (const [heldBatch, mine] of Map.groupBy(tasks, (task) => task.heldBatch)) {
    const messages = mine.map(({ claimed }) => claimed)
    if (heldBatch.remaining === mine.length) heldBatch.notStarted.push(...messages)
    else if (!heldBatch.lost) {
      heldBatch.unanswered += 1
      const answered = () => {
        heldBatch.unanswered -= 1
        heldBatch.messages = heldBatch.messages.filter((message) => !messages.includes(message))
      }
      const ids = messages.map(({ messageId }) => messageId)
      // Once asked, the answer is awaited: a stop in between would not know what is still ours.
      yield* Effect.uninterruptible(Effect.map(queue.putBack(heldBatch.batch, ids), answered)).pipe(
        Effect.retry(storePauses),
        Effect.orDie
      )
    }
    yield* lessen(heldBatch, heldBatches, mine.length)
  }
})

/** One message less on our hands. */
const finish = (heldBatch: HeldBatch, heldBatches: HeldBatches, later: AbandonedMessage | null) =>
  Effect.suspend(() => {
    if (later !== null) heldBatch.notStarted.push(later)
    return lessen(heldBatch, heldBatches, 1)
  })

/** The last message releases the batch. */
const lessen = (heldBatch: HeldBatch, heldBatches: HeldBatches, count: number) =>
  Effect.suspend(() => {
    heldBatch.remaining -= count
    return heldBatch.remaining > 0 ? Effect.void : release(heldBatch, heldBatches)
  })

const release = Effect.fnUntraced(function* (heldBatch: HeldBatch, heldBatches: HeldBatches) {
  const queue = yield* Queue
  if (!heldBatch.lost)
    yield* queue.release(heldBatch.batch, heldBatch.notStarted).pipe(Effect.retry(storePauses), Effect.orDie)
  heldBatches.remove(heldBatch)
})

// ---------------------------------------------------------------------------------------------- keeper

const keep = Effect.fnUntraced(function* ({ worker, lease }: WorkerSettings, heldBatches: HeldBatches) {
  const queue = yield* Queue
  const renew = Effect.fnUntraced(function* () {
    const held = heldBatches.all().filter(({ lost }) => !lost)
    if (held.length === 0) return
    const renewed = yield* queue.renew(
      held.map(({ batch }) => batch),
      lease
    )
    for (const heldBatch of held) {
      if (!renewed.has(heldBatch.batch)) {
        heldBatch.lose()
      }
    }
  })
  const pause = Duration.divideUnsafe(lease, 3)
  const step = Effect.suspend(renew).pipe(
    // A stop may not come between taking a batch over and giving it up: its messages would wait for one more lease.
    Effect.andThen(Effect.uninterruptible(recover(worker, lease))),
    Effect.andThen(Effect.sleep(pause))
  )
  return yield* background("renewing leases", step, pause)
})
