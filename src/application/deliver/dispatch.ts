/**
 * The worker: a feeder claims due messages ahead of a pool of actors, and each actor owns one message at a time from
 * claim to settlement.
 *
 *   feeder     queue.claim ─▶ waiting room (org by org, lane by lane, within each lane's capacity and slots)
 *   actors     waiting room ─▶ deliver: start, send, settle ─▶ release the batch with its last message
 *   keeper     renews this worker's leases and recovers the batches of workers that are gone
 *
 * Closing its scope is a graceful stop: nothing new is claimed or started, messages under way get `grace` to settle,
 * the rest is abandoned with a fact that says so, and no lease is left.
 */
import { Clock, DateTime, Duration, Effect, Fiber, Schedule } from "effect"
import { type CircuitPolicy, circuitDefaults } from "../../domain/circuit/policy.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import { background } from "../background.ts"
import { storePauses } from "../command.ts"
import type { StoreUnavailable } from "../errors.ts"
import { type Claim, type ClaimedMessage, Queue } from "../ports/Queue.ts"
import { SetAside } from "../ports/SetAside.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { Tracing } from "../ports/Tracing.ts"
import { deliver, type Paced } from "./deliver.ts"
import { type HeldBatch, type HeldBatches, makeHeldBatches } from "./heldBatches.ts"
import { failedOn, sayAside } from "./mendMessages.ts"
import { recover, recoverBatch } from "./recover.ts"
import { Senders } from "./Senders.ts"
import { makeSlots, type Slots } from "./slots.ts"
import { makeWaitingRoom, type WaitingRoom, WINDOW_FIRST } from "./waitingRoom.ts"
import { type CircuitWatch, watchCircuits } from "./watchCircuits.ts"

export interface WorkerSettings {
  /** Names this worker's leases; unique among living processes. */
  readonly worker: string
  /** Messages under way at once in this process. */
  readonly concurrency: number
  /** How long a silent worker keeps its messages. */
  readonly lease: Duration.Duration
  /** How long a graceful stop waits for messages under way. */
  readonly grace: Duration.Duration
  readonly circuit?: CircuitPolicy
}

interface Task {
  readonly claimed: ClaimedMessage
  readonly heldBatch: HeldBatch
  /** In nanoseconds of the monotonic clock; after it the message goes back to the queue. Null: no time. */
  readonly startBy: bigint | null
}

const NANOS_PER_MILLI = 1_000_000n
const CLAIM_MAX = 500
const POLL_FLOOR = Duration.seconds(1)
/** A message is due but was not handed out: another worker is claiming from its lane, or this one has enough of it. */
const POLL_SOON = Duration.millis(20)
const BEGIN_EVERY_MS = 10
const STORE_PAUSE = Duration.millis(250)
/** A store that does not answer is left alone by a stop: the leases run out. */
const HANDED_BACK_WITHIN = Duration.seconds(5)

/** Starts the worker; it runs until the scope closes. */
export const dispatch = Effect.fnUntraced(function* (settings: WorkerSettings) {
  const heldBatches = makeHeldBatches(settings.lease, (yield* Telemetry).leaseLost)
  const clock = yield* Clock.Clock
  const slots = makeSlots(() => preciseMillis(clock.monotonicTimeNanosUnsafe()))
  const waitingRoom = makeWaitingRoom<Task>(
    settings.concurrency,
    () => monotonicMillis(clock),
    ({ claimed: { lane, terms } }) => (terms.slot === null ? null : slots.beginsAt(lane))
  )
  const circuits: CircuitWatch = watchCircuits(
    settings.circuit ?? circuitDefaults,
    (lane, { status, generation, inFlightMax }) => {
      if (status === "CLOSED") return Effect.sync(() => waitingRoom.limit(lane, inFlightMax))
      return Effect.suspend(() =>
        putBack(
          waitingRoom.withdraw(lane, ({ claimed }) => claimed.terms.generation < generation),
          heldBatches,
          circuits
        )
      )
    },
    waitingRoom.reported
  )

  const keeper = yield* Effect.forkDetach(keep(settings, heldBatches))
  const watcher = yield* Effect.forkDetach(circuits.run)
  const actors = yield* Effect.forEach(Array.from({ length: settings.concurrency }), () =>
    Effect.forkDetach(act(waitingRoom, heldBatches, circuits, slots))
  )
  const beginner = yield* Effect.forkDetach(beginInTime(waitingRoom))
  const returner = yield* Effect.forkDetach(handBackSurplus(waitingRoom, heldBatches, circuits, slots))
  const feeder = yield* Effect.forkDetach(feed(settings, waitingRoom, heldBatches, circuits, slots))

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(feeder)
      // A store that does not answer must not block a stop: a batch that could not be handed back waits for its lease.
      yield* Effect.forEach(waitingRoom.drain(), ({ claimed, heldBatch }) => {
        circuits.observe(claimed, null)
        heldBatch.notStarted.push(claimed)
        return finish(heldBatch, heldBatches)
      }).pipe(Effect.andThen(untilEmpty(heldBatches)), Effect.timeoutOption(settings.grace))
      yield* Fiber.interruptAll(actors)
      yield* Fiber.interruptAll([watcher, beginner, returner])
      yield* handBack(heldBatches, settings.lease).pipe(
        Effect.andThen(circuits.flush),
        Effect.timeoutOption(HANDED_BACK_WITHIN)
      )
      yield* Fiber.interrupt(keeper)
    })
  )
})

const untilEmpty = (heldBatches: HeldBatches) =>
  Effect.suspend(() => Effect.succeed(heldBatches.all().length === 0)).pipe(
    Effect.repeat({ until: (empty) => empty, schedule: Schedule.spaced("20 millis") })
  )

/**
 * A stopping worker settles its remaining messages as if it had crashed, only at once, and under new names of its batches: what its
 * actors still have on the way to the store must have no effect on messages that are given away here.
 */
const handBack = Effect.fnUntraced(function* (heldBatches: HeldBatches, lease: Duration.Duration) {
  const left = heldBatches.all().filter(({ lost }) => !lost)
  if (left.length === 0) return
  for (const heldBatch of left) heldBatches.remove(heldBatch)
  const queue = yield* Queue
  const orLeave = <A, R>(work: Effect.Effect<A, StoreUnavailable, R>) =>
    work.pipe(
      Effect.retry({ times: 5, schedule: Schedule.exponential("100 millis") }),
      Effect.catch((error) => Effect.logError("a batch could not be handed back; its lease will run out", error))
    )
  const renamed = yield* orLeave(
    queue.rename(
      left.map(({ batch }) => batch),
      lease
    )
  )
  yield* Effect.forEach(
    renamed ?? [],
    ({ batch, messages }) => orLeave(recoverBatch(batch, messages, "the worker was stopped")),
    { concurrency: 4, discard: true }
  )
})

// ---------------------------------------------------------------------------------------------- feeder

const feed = Effect.fnUntraced(function* (
  settings: WorkerSettings,
  waitingRoom: WaitingRoom<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch,
  slots: Slots
) {
  const clock = yield* Clock.Clock
  const queue = yield* Queue
  const channels = yield* Senders
  const capacity = (channel: ChannelName, orgId: OrgId, lane: DestinationId) =>
    (channels[channel]?.capacity(orgId, lane) ?? Effect.succeed(1)).pipe(
      // Every claimed message must reach an actor. A destination that can't be read, such as one whose secret does not
      // open, then fails there, alone.
      Effect.catchDefect((defect) =>
        Effect.logError(`destination ${lane} can't be asked how much it takes`, defect).pipe(Effect.as(1))
      )
    )

  /** True when a batch was claimed. A stop may not come between the claim and its bookkeeping here. */
  const claimOnce = Effect.fnUntraced(function* () {
    const { lanes: room, fullOrgs, isFull } = waitingRoom.room()
    const limit = CLAIM_MAX - waitingRoom.startable()
    if (isFull || limit < CLAIM_MAX / 2) return false
    const askedAt = clock.monotonicTimeNanosUnsafe()
    const claim = yield* queue.claim({
      worker: settings.worker,
      limit,
      perLane: WINDOW_FIRST,
      ...{ room, fullOrgs },
      lease: settings.lease
    })
    if (claim === null) return false
    slots.claimed(claim, preciseMillis(askedAt), preciseMillis(clock.monotonicTimeNanosUnsafe()))
    const heldBatch = heldBatches.add(claim, askedAt)
    circuits.claimed(claim)
    yield* putUnreadableAside(heldBatch, claim, heldBatches, circuits)
    const lanes = [...Map.groupBy(claim.messages, (message) => message.lane)]
    // All at once: a slot comes soon, whatever else the claim holds.
    const capacities = yield* Effect.forEach(
      lanes,
      ([lane, [first]]) => capacity(first!.queued.channel, first!.queued.orgId, lane),
      { concurrency: "unbounded" }
    )
    for (const [index, [lane, messages]] of lanes.entries()) {
      const { terms } = messages[0]!
      const startBy = terms.startWithinMs === null ? null : askedAt + BigInt(terms.startWithinMs) * NANOS_PER_MILLI
      waitingRoom.offer(
        lane,
        messages[0]!.queued.orgId,
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
    yield* Effect.raceFirst(queue.awaitWork(Duration.min(until, POLL_FLOOR)), waitingRoom.wantsMore)
  })

  const step = Effect.flatMap(Effect.suspend(claimOnce), (claimed) => (claimed ? Effect.void : rest()))
  return yield* background("claiming messages", step, STORE_PAUSE)
})

/** Lets messages go whose slots come near. */
const beginInTime = (waitingRoom: WaitingRoom<Task>) => {
  const step = Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const next = waitingRoom.begin()
    if (next === null) return yield* waitingRoom.wantsToBegin
    // Nobody says that another lane comes sooner: what is late by so little is still early for its slot.
    yield* Effect.sleep(Duration.millis(Math.min(Math.max(next - monotonicMillis(clock), 1), BEGIN_EVERY_MS)))
  })
  return background("waiting for slots of rate limits", step, STORE_PAUSE)
}

/** What slow lanes hold beyond what they can start soon goes back to the queue. */
const handBackSurplus = (
  waitingRoom: WaitingRoom<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch,
  slots: Slots
) => {
  const step = Effect.gen(function* () {
    const tasks = yield* waitingRoom.surplus
    yield* putBack(tasks, heldBatches, circuits)
    for (const [lane, mine] of Map.groupBy(tasks, ({ claimed }) => claimed.lane)) {
      yield* slots.giveBack(lane, mine.length)
    }
  })
  return background("handing back messages of slow lanes", step, STORE_PAUSE)
}

// ---------------------------------------------------------------------------------------------- actors

const act = Effect.fnUntraced(function* (
  waitingRoom: WaitingRoom<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch,
  slots: Slots
) {
  // Looked up once: an actor takes thousands of messages.
  const watched = { telemetry: yield* Telemetry, tracing: yield* Tracing }
  const clock = yield* Clock.Clock
  for (;;) {
    const task = yield* waitingRoom.take
    const { claimed, heldBatch } = task
    const takenAt = monotonicMillis(clock)
    const paced: Paced = { slot: null, slots, begunAt: clock.monotonicTimeNanosUnsafe(), waitedMs: 0 }
    let underWay = true
    /** Other messages that this worker holds of a lane that was deferred. */
    let others: ReadonlyArray<Task> = []
    const sent = (outcome: AttemptOutcome | null = null, isUnreported = false) => {
      if (outcome?.type === "Deferred" && outcome.scope !== "message")
        others = waitingRoom.withdraw(claimed.lane, () => true)
      if (underWay) waitingRoom.ended(claimed.lane, monotonicMillis(clock) - takenAt - paced.waitedMs, isUnreported)
      underWay = false
    }
    if (task.startBy !== null && (yield* isPast(task.startBy))) {
      sent()
      yield* putBack([task], heldBatches, circuits)
      continue
    }
    const { lane, terms } = claimed
    if (terms.slot !== null) {
      paced.slot = slots.take(lane)
      if (paced.slot === null) {
        // This process stood still. The store may be so slow that no slot it hands out can be kept: then one message at a time goes.
        const behind = waitingRoom.withdraw(lane, (other) => other.claimed.terms.slot !== null)
        yield* putBack(behind, heldBatches, circuits)
        paced.slot = yield* slots.next(lane, terms.slot, 0)
      }
      if (paced.slot === null) {
        sent()
        yield* putBack([task], heldBatches, circuits)
        continue
      }
    }
    const refused = yield* Effect.catchDefect(deliver(claimed, heldBatch, circuits, paced, watched, sent), (defect) =>
      putAside(claimed, heldBatch, circuits, defect)
    )
    sent()
    if (refused === "GateClosed") {
      // Other messages of the lane with the same generation meet the same closed gate.
      others = waitingRoom.withdraw(lane, (other) => other.claimed.terms.generation === terms.generation)
      yield* putBack([task, ...others], heldBatches, circuits)
    } else {
      yield* putBack(others, heldBatches, circuits)
      yield* finish(heldBatch, heldBatches)
    }
    // With a store and a channel that answer at once, an actor would never let the other fibers run.
    yield* Effect.yieldNow
  }
})

/** A bug in Posthaste, or a stream that can't be read, must not keep the message's batch-mates. */
const putAside = Effect.fnUntraced(function* (
  claimed: ClaimedMessage,
  heldBatch: HeldBatch,
  circuits: CircuitWatch,
  defect: unknown
) {
  circuits.observe(claimed, null)
  yield* sayAside(claimed.messageId, "failed", defect)
  const setAside = yield* SetAside
  const unprocessable = failedOn(claimed, claimed.queued.orgId, defect)
  yield* takeOut(heldBatch, setAside.put(heldBatch.batch, [unprocessable]))
})

/** What the claim could not read. A batch that can't be rid of it is left to whoever takes it over. */
const putUnreadableAside = Effect.fnUntraced(function* (
  heldBatch: HeldBatch,
  { messages, unreadable = [] }: Claim,
  heldBatches: HeldBatches,
  circuits: CircuitWatch
) {
  if (unreadable.length === 0) return
  for (const message of unreadable) {
    circuits.observe(message, null)
    yield* sayAside(message.messageId, message.reason)
  }
  yield* (yield* SetAside).put(heldBatch.batch, unreadable).pipe(
    Effect.retry({ schedule: storePauses, times: 3 }),
    Effect.catch(() => Effect.sync(heldBatch.lose))
  )
  if (messages.length === 0) yield* release(heldBatch, heldBatches)
})

/** Messages leave a batch that is held on. */
const takeOut = (heldBatch: HeldBatch, ask: Effect.Effect<void, StoreUnavailable>) =>
  Effect.suspend(() => (heldBatch.lost ? Effect.void : ask.pipe(Effect.retry(storePauses), Effect.orDie)))

const preciseMillis = (nanos: bigint) => Number(nanos) / 1e6

const monotonicMillis = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe() / NANOS_PER_MILLI)

const isPast = (moment: bigint) => Effect.map(Clock.Clock, (clock) => clock.monotonicTimeNanosUnsafe() > moment)

/**
 * Messages that may not be sent now go back to the queue at once and wait as before: they lose no attempt, and a slow
 * message of the same batch does not hold them up. A probe among them gives its permit back.
 */
const putBack = Effect.fnUntraced(function* (
  tasks: ReadonlyArray<Task>,
  heldBatches: HeldBatches,
  circuits: CircuitWatch
) {
  const queue = yield* Queue
  for (const { claimed } of tasks) circuits.observe(claimed, null)
  for (const [heldBatch, mine] of Map.groupBy(tasks, (task) => task.heldBatch)) {
    const messages = mine.map(({ claimed }) => claimed)
    if (heldBatch.remaining === mine.length) heldBatch.notStarted.push(...messages)
    else {
      const ids = messages.map(({ messageId }) => messageId)
      yield* takeOut(heldBatch, queue.putBack(heldBatch.batch, ids))
    }
    yield* finish(heldBatch, heldBatches, mine.length)
  }
})

/** The last message of a batch releases it. */
const finish = (heldBatch: HeldBatch, heldBatches: HeldBatches, count = 1) =>
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
  const clock = yield* Clock.Clock
  const renew = Effect.fnUntraced(function* () {
    const held = heldBatches.all().filter(({ lost }) => !lost)
    if (held.length === 0) return
    const askedAt = clock.monotonicTimeNanosUnsafe()
    const renewed = yield* queue.renew(
      held.map(({ batch }) => batch),
      lease
    )
    for (const heldBatch of held) {
      if (renewed.has(heldBatch.batch)) heldBatch.renewed(askedAt)
      // One whose last message ended meanwhile is not lost: this worker let it go itself.
      else if (heldBatch.remaining > 0) heldBatch.lose()
    }
  })
  const pause = Duration.divideUnsafe(lease, 3)
  const step = Effect.suspend(renew).pipe(
    // A stop may not come between taking a batch over and releasing it: its messages would wait for one more lease.
    Effect.andThen(Effect.uninterruptible(recover(worker, lease))),
    Effect.andThen(Effect.sleep(pause))
  )
  return yield* background("renewing leases", step, pause)
})
