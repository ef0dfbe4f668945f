/**
 * Keeps every projection up with the log, and rebuilds one beside its live rows when the fold is newer or the operator
 * asks. Each has fibers of its own, so one that is slow or fails stops no other; of processes that take the same step
 * one writes it. A stream that a projection fails on is parked. A process with an older fold leaves the rows alone; one
 * with a newer fold updates the live rows until the rebuilt ones are there.
 */
import { Context, DateTime, Duration, Effect, Semaphore } from "effect"
import { background } from "../../background.ts"
import { parking } from "../../park.ts"
import { EventStore, type LoggedFact } from "../../ports/EventStore.ts"
import { Projections, type Run, type Stall } from "../../ports/Projections.ts"
import { Pulse } from "../../ports/Pulse.ts"
import { LogReader } from "../LogReader.ts"
import { projections } from "./all.ts"
import type { Projection } from "./Projection.ts"
import { beginBuild, viewOf } from "./rebuild.ts"

/** The most facts of a step. Tests want many small steps. */
export const FactsAtOnce = Context.Reference<number>("posthaste/application/log/projections/FactsAtOnce", {
  defaultValue: () => 2_000
})
/** Facts collect during the pause, and cost less together. */
const PAUSE_BUSY = Duration.millis(100)
const PAUSE_OVERTAKEN = Duration.seconds(1)
const PAUSE_NO_BUILD = Duration.seconds(30)
const PAUSE_MEETING = Duration.millis(10)
const CLEAR_AT_ONCE = 1_000
const PAUSE_CLEARING = Duration.millis(100)
const STALL_AFTER = Duration.seconds(10)

const nameOf = ({ name, generation }: Run) => `${name}/${generation}`

/** One step. Answers the run after it, or null when another process took the step. */
const take = Effect.fnUntraced(function* <R>(projection: Projection<R>, run: Run, facts: ReadonlyArray<LoggedFact>) {
  const { answer: write } = yield* parking(facts, projection.project)
  const position = facts.at(-1)!.position
  if (!(yield* write({ generation: run.generation, from: run.position, to: position, facts: facts.length })))
    return null
  return { ...run, position, facts: run.facts + facts.length }
})

/**
 * A step with a full page brings the streams in memory up to the next page first, so that a message with facts in both
 * is written once. Both pages are read anyway, and the log keeps a few of them.
 */
const takeFull = Effect.fnUntraced(function* <R>(
  projection: Projection<R>,
  run: Run,
  facts: ReadonlyArray<LoggedFact>
) {
  const log = yield* LogReader
  yield* log.streams(facts).pipe(
    Effect.andThen(log.read(facts.at(-1)!.position, facts.length)),
    Effect.flatMap(log.streams),
    // A defect is dealt with in its own step.
    Effect.catchDefect(() => Effect.void),
    Effect.ignore
  )
  return yield* take(projection, run, facts)
})

const follow = Effect.fnUntraced(function* <R>(projection: Projection<R>, oneAtATime: Semaphore.Semaphore) {
  const log = yield* LogReader
  const atOnce = yield* FactsAtOnce
  let run = viewOf(projection.name, yield* (yield* Projections).runs).live ?? (yield* beginBuild(projection))
  yield* log.begin(nameOf(run))
  // Another process may have begun the live rows meanwhile: `beginBuild` then answered a build beside them.
  while (run.live && run.version <= projection.version) {
    const facts = yield* log.read(run.position, atOnce)
    if (facts.length === 0) {
      yield* log.news(run.position)
      continue
    }
    const isFull = facts.length === atOnce
    const next = yield* isFull
      ? oneAtATime.withPermits(1)(takeFull(projection, run, facts))
      : take(projection, run, facts)
    if (next === null) break
    run = next
    if (!isFull) yield* Effect.sleep(PAUSE_BUSY)
  }
  yield* Effect.sleep(PAUSE_OVERTAKEN)
})

const build = Effect.fnUntraced(function* <R>(projection: Projection<R>, oneAtATime: Semaphore.Semaphore) {
  const { wait } = (yield* Pulse).listener("jobs")
  yield* clear(projection)
  for (;;) {
    const { live, build: under } = viewOf(projection.name, yield* (yield* Projections).runs)
    const isOutdated = live !== null && live.version < projection.version
    const run = under ?? (isOutdated ? yield* beginBuild(projection) : null)
    // A build with an older fold gives way to this one.
    if (run !== null && isOutdated && run.version < projection.version) yield* beginBuild(projection)
    else if (run !== null && run.version <= projection.version && !run.live) {
      yield* Effect.logInfo(`building ${projection.name} anew beside what is live, from fact ${run.facts} on`)
      if (yield* catchUp(projection, run, oneAtATime)) {
        yield* Effect.logInfo(`${projection.name} was built anew and took its place`)
        yield* clear(projection)
      } else yield* Effect.sleep(PAUSE_OVERTAKEN)
    } else yield* wait(PAUSE_NO_BUILD)
  }
})

/** Folds until the build meets the live rows and takes their place; false when another process does the same. */
const catchUp = Effect.fnUntraced(function* <R>(projection: Projection<R>, from: Run, oneAtATime: Semaphore.Semaphore) {
  const log = yield* LogReader
  const { swap } = yield* Projections
  const atOnce = yield* FactsAtOnce
  let run = from
  yield* log.begin(nameOf(run))
  let isNear = false
  for (;;) {
    const facts = yield* log.read(run.position, atOnce)
    isNear = facts.length < atOnce
    if (!isNear) {
      const next = yield* oneAtATime.withPermits(1)(takeFull(projection, run, facts))
      if (next === null) return false
      run = next
      continue
    }
    // Both runs move: the build goes to the live run's position and swaps if the live run is still there.
    const { live, build: under } = viewOf(projection.name, yield* (yield* Projections).runs)
    if (live === null || under?.generation !== run.generation) return false
    const upToLive = facts.slice(0, facts.findIndex(({ position }) => position === live.position) + 1)
    if (upToLive.length > 0) {
      const next = yield* take(projection, run, upToLive)
      if (next === null) return false
      run = next
    }
    if (run.position === live.position && (yield* swap(projection.name, run.generation))) return true
    yield* Effect.sleep(PAUSE_MEETING)
  }
})

const clear = Effect.fnUntraced(function* <R>(projection: Projection<R>) {
  while ((yield* projection.clear(CLEAR_AT_ONCE)) > 0) yield* Effect.sleep(PAUSE_CLEARING)
})

const logStalls = Effect.gen(function* () {
  let reported: Stall | null = null
  for (;;) {
    const stall: Stall | null = yield* (yield* Projections).stall(STALL_AFTER)
    if (stall === null && reported !== null) {
      const seconds = Math.round(Duration.toSeconds(DateTime.distance(reported.since, yield* DateTime.now)))
      yield* Effect.logInfo(`the projections read on again, ${seconds} s`)
    }
    if (stall !== null && stall.pid !== reported?.pid) {
      const seconds = Math.round(Duration.toSeconds(DateTime.distance(stall.since, yield* DateTime.now)))
      yield* Effect.logWarning(
        `no projection can read on: a transaction of process ${stall.pid} (${stall.application}) is open for ${seconds} s`
      )
    }
    reported = stall
    yield* Effect.sleep(STALL_AFTER)
  }
})

export const keepProjections = Effect.suspend(() => {
  // Runs that are far behind take turns: all at once would keep every core from the requests of the API.
  const oneAtATime = Semaphore.makeUnsafe(1)
  return Effect.all(
    [
      ...projections.flatMap((projection) => [
        background(`projecting ${projection.name}`, follow(projection, oneAtATime)),
        background(`building ${projection.name}`, build(projection, oneAtATime))
      ]),
      background("looking for stalls", logStalls)
    ],
    { concurrency: "unbounded", discard: true }
  )
})

/** One step of every live run; answers the largest number of new facts. */
export const projectOnce = Effect.fnUntraced(function* () {
  let news = 0
  for (const projection of projections) {
    const run = viewOf(projection.name, yield* (yield* Projections).runs).live ?? (yield* beginBuild(projection))
    const facts = yield* (yield* EventStore).readAll(run.position, yield* FactsAtOnce)
    if (facts.length > 0) yield* take(projection, run, facts)
    news = Math.max(news, facts.length)
  }
  return news
})
