/**
 * The worker: a feeder claims due messages into the pools, actors deliver one message each, a sweeper moves slow
 * attempts to the slow pool, and a keeper renews leases and recovers batches of workers that are gone. Closing the
 * scope is a graceful stop: nothing new starts, messages under way get `grace`, the rest is abandoned with a fact, and
 * no lease is left.
 */
import { Clock, Duration, Effect, Fiber, Schedule } from "effect"
import { type CircuitPolicy, circuitDefaults } from "../../domain/circuit/policy.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import { streamOf } from "../../domain/streams.ts"
import { background } from "../background.ts"
import { park } from "../park.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { Queue } from "../ports/Queue.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { Tracing } from "../ports/Tracing.ts"
import { deliver, type Task, type Watched } from "./deliver.ts"
import { feed } from "./feed.ts"
import type { Lease } from "./lease.ts"
import { type Attempt, makePools, type Pools } from "./pools.ts"
import { finish, putBack, takeOut } from "./putBack.ts"
import { recover, recoverBatch } from "./recover.ts"
import { watchCircuits } from "./watchCircuits.ts"

interface WorkerSettings {
  readonly worker: string
  /** The size of the quick pool. */
  readonly concurrency: number
  readonly lease: Duration.Duration
  readonly grace: Duration.Duration
  readonly circuit?: CircuitPolicy
}

interface Worker extends Watched {
  readonly pools: Pools<Task>
  readonly leases: Set<Lease>
}

const NANOS_PER_MILLI = 1_000_000n
const STORE_PAUSE = Duration.millis(250)
const SWEEP_EVERY = Duration.millis(100)
/** A stop waits no longer for the store: the leases run out. */
const HANDED_BACK_WITHIN = Duration.seconds(5)

export const dispatch = Effect.fnUntraced(function* (settings: WorkerSettings) {
  const clock = yield* Clock.Clock
  const telemetry = yield* Telemetry
  const leases = new Set<Lease>()
  const actors: Array<Fiber.Fiber<never>> = []
  const idle: Idle = []
  const fork = Effect.runForkWith(yield* Effect.context<Effect.Services<ReturnType<typeof act>>>())
  const start = (attempt: Attempt<Task>) => {
    // The last one to become idle has the warmest caches.
    const actor = idle.pop()
    if (actor === undefined) actors.push(fork(act(worker, idle, attempt)))
    else actor(attempt)
  }
  const pools: Pools<Task> = makePools(
    settings.concurrency,
    () => Number(clock.monotonicTimeNanosUnsafe() / NANOS_PER_MILLI),
    start
  )
  const circuits = watchCircuits(
    settings.circuit ?? circuitDefaults,
    (lane, { status, generation, inFlightMax }) => {
      if (status === "CLOSED") return Effect.sync(() => pools.limit(lane, inFlightMax))
      return Effect.suspend(() =>
        putBack(
          pools.withdraw(lane, ({ claimed }) => claimed.terms.generation < generation),
          worker
        )
      )
    },
    pools.reported
  )
  const worker: Worker = { pools, leases, circuits, telemetry, tracing: yield* Tracing }
  const feeding = { ...worker, ...settings, onLeaseLost: telemetry.leaseLost }

  const keeper = yield* Effect.forkDetach(keep(settings, leases))
  const watcher = yield* Effect.forkDetach(circuits.run)
  const sweeper = yield* Effect.forkDetach(background("moving slow requests", sweep(worker), STORE_PAUSE))
  const feeder = yield* Effect.forkDetach(background("claiming messages", feed(feeding), STORE_PAUSE))

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(feeder)
      // A batch that can't be handed back waits for its lease.
      yield* Effect.forEach(pools.drain(), ({ claimed, lease }) => {
        circuits.observe(claimed, null)
        lease.notStarted.push(claimed)
        return finish(lease, leases)
      }).pipe(Effect.andThen(untilEmpty(leases)), Effect.timeoutOption(settings.grace))
      yield* Fiber.interruptAll(actors)
      yield* Fiber.interruptAll([watcher, sweeper])
      yield* handBack(leases, settings.lease).pipe(
        Effect.andThen(circuits.flush),
        Effect.timeoutOption(HANDED_BACK_WITHIN)
      )
      yield* Fiber.interrupt(keeper)
    })
  )
})

const untilEmpty = (leases: ReadonlySet<Lease>) =>
  Effect.suspend(() => Effect.succeed(leases.size === 0)).pipe(
    Effect.repeat({ until: (empty) => empty, schedule: Schedule.spaced("20 millis") })
  )

/**
 * Settles the remaining messages of a stopping worker as if it had crashed, under new names of its batches, so that
 * late appends of its actors have no effect.
 */
const handBack = Effect.fnUntraced(function* (leases: Set<Lease>, lease: Duration.Duration) {
  const left = [...leases].filter(({ lost }) => !lost)
  if (left.length === 0) return
  for (const held of left) leases.delete(held)
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

type Idle = Array<(attempt: Attempt<Task>) => void>

const act = Effect.fnUntraced(function* (worker: Worker, idle: Idle, first: Attempt<Task>) {
  for (let attempt = first; ; attempt = yield* next(idle)) {
    // The attempt came in the middle of another actor's step.
    yield* Effect.yieldNow
    yield* run(attempt, worker)
  }
})

const next = (idle: Idle) =>
  Effect.callback<Attempt<Task>>((resume) => void idle.push((attempt) => resume(Effect.succeed(attempt))))

const run = Effect.fnUntraced(function* (attempt: Attempt<Task>, worker: Worker) {
  const { pools, leases } = worker
  const { item: task } = attempt
  const { lane, terms } = task.claimed
  let isUnderWay = true
  let others: ReadonlyArray<Task> = []
  const sent = (outcome: AttemptOutcome | null, isUnreported: boolean) => {
    if (outcome?.type === "Deferred" && outcome.scope !== "message") others = pools.withdraw(lane, () => true)
    if (isUnderWay) pools.ended(attempt, { hasAnswered: isAnswer(outcome), isUnreported })
    isUnderWay = false
  }
  if (task.startBy !== null && (yield* isPast(task.startBy))) {
    sent(null, false)
    return yield* putBack([task], worker)
  }
  const refused = yield* Effect.catchDefect(deliver(task, worker, sent), (defect) => parkOne(task, worker, defect))
  sent(null, false)
  if (refused === "GateClosed") {
    // Messages of the same generation meet the same closed gate.
    others = pools.withdraw(lane, (other) => other.claimed.terms.generation === terms.generation)
    return yield* putBack([task, ...others], worker)
  }
  yield* putBack(others, worker)
  yield* finish(task.lease, leases)
})

const isAnswer = (outcome: AttemptOutcome | null) =>
  outcome !== null && (outcome.type === "Accepted" || outcome.status !== null)

const isPast = (moment: bigint) => Effect.map(Clock.Clock, (clock) => clock.monotonicTimeNanosUnsafe() > moment)

/**
 * A bug or an unreadable stream must not keep the message's batch-mates. A parked message leaves the queue with its
 * batch.
 */
const parkOne = ({ claimed, lease }: Task, { circuits }: Worker, defect: unknown) => {
  circuits.observe(claimed, null)
  return takeOut(lease, park(new Map([[streamOf(claimed.messageId), defect]])))
}

const sweep = (worker: Worker) =>
  worker.pools.hasQuick.pipe(
    Effect.andThen(Effect.sleep(SWEEP_EVERY)),
    Effect.andThen(Effect.suspend(() => putBack(worker.pools.sweep(), worker)))
  )

const keep = Effect.fnUntraced(function* ({ worker, lease }: WorkerSettings, leases: Set<Lease>) {
  const queue = yield* Queue
  const clock = yield* Clock.Clock
  const renew = Effect.fnUntraced(function* () {
    const held = [...leases].filter(({ lost }) => !lost)
    if (held.length === 0) return
    const askedAt = clock.monotonicTimeNanosUnsafe()
    const renewed = yield* queue.renew(
      held.map(({ batch }) => batch),
      lease
    )
    for (const one of held) {
      if (renewed.has(one.batch)) one.renewed(askedAt)
      // This worker let it go itself when its last message ended meanwhile.
      else if (one.remaining > 0) one.lose()
    }
  })
  const pause = Duration.divideUnsafe(lease, 3)
  const step = Effect.suspend(renew).pipe(
    // A stop between take-over and release would keep the messages for one more lease.
    Effect.andThen(Effect.uninterruptible(recover(worker, lease))),
    Effect.andThen(Effect.sleep(pause))
  )
  return yield* background("renewing leases", step, pause)
})
