/**
 * Keeps every projection up with the log, and builds anew beside what is live where a fold is newer than its rows or
 * somebody asked for it.
 *
 * Each projection is followed and built by fibers of its own: one that is slow or fails stops no other. Several
 * processes may do all this at once: of those that take the same step one writes it, and the others stand back for a
 * while. What they share within a process is the reading (see LogReader).
 *
 * A process whose fold is older than the rows leaves them alone. One whose fold is newer goes on with the rows that are
 * live, in its own way, until the new ones are there: fresh is worth more than uniform for so short a time.
 */
import { DateTime, Duration, Effect, Semaphore } from "effect"
import { background } from "../../background.ts"
import { EventStore, type LoggedFact } from "../../ports/EventStore.ts"
import { Projections, type Run, type Step } from "../../ports/Projections.ts"
import { LogReader } from "../LogReader.ts"
import { projections } from "./all.ts"
import type { Projection } from "./Projection.ts"

const FOLLOW_AT_ONCE = 2_000
const BUILD_AT_ONCE = 2_000
/** More facts come together meanwhile, and cost less together. */
const PAUSE_BUSY = Duration.millis(100)
const PAUSE_OVERTAKEN = Duration.seconds(1)
/** How long the wish for a build waits for us at most. */
const PAUSE_NO_BUILD = Duration.seconds(1)
const PAUSE_MEETING = Duration.millis(10)
const CLEAR_AT_ONCE = 1_000
const PAUSE_CLEARING = Duration.millis(100)
const STALL_AFTER = Duration.seconds(10)

const runsOf = Effect.fnUntraced(function* (name: string) {
  const runs = (yield* (yield* Projections).runs).filter((run) => run.name === name)
  return { live: runs.find(({ live }) => live) ?? null, build: runs.find(({ live }) => !live) ?? null }
})

const beginBuild = Effect.fnUntraced(function* ({ name, version }: Pick<Projection<never>, "name" | "version">) {
  const { facts } = yield* (yield* EventStore).extent
  return yield* (yield* Projections).build(name, version, facts)
})

const stepOf = (run: Run, facts: ReadonlyArray<LoggedFact>): Step => ({
  generation: run.generation,
  from: run.position,
  to: facts.at(-1)!.position,
  facts: facts.length
})

const moved = (run: Run, { to, facts }: Step): Run => ({ ...run, position: to, facts: run.facts + facts })

/** One step; the run where it stands then, or null when somebody else took it. */
const take = Effect.fnUntraced(function* <R>(projection: Projection<R>, run: Run, facts: ReadonlyArray<LoggedFact>) {
  const step = stepOf(run, facts)
  return (yield* projection.project(facts, step)) ? moved(run, step) : null
})

/** Follows the log with the rows that are live, until it is overtaken or fails. */
const follow = Effect.fnUntraced(function* <R>(projection: Projection<R>, oneAtATime: Semaphore.Semaphore) {
  const log = yield* LogReader
  let run = (yield* runsOf(projection.name)).live ?? (yield* beginBuild(projection))
  // Somebody may have been first while we found nothing live: then we were given a build beside it.
  while (run.live && run.version <= projection.version) {
    const facts = yield* log.read(run.position, FOLLOW_AT_ONCE)
    if (facts.length === 0) {
      yield* log.news(run.position)
      continue
    }
    const isFull = facts.length === FOLLOW_AT_ONCE
    const step = take(projection, run, facts)
    const next = yield* isFull ? oneAtATime.withPermits(1)(step) : step
    if (next === null) break
    run = next
    if (!isFull) yield* Effect.sleep(PAUSE_BUSY)
  }
  yield* Effect.sleep(PAUSE_OVERTAKEN)
})

/** Builds beside, when there is something to build, and clears what was left behind. */
const build = Effect.fnUntraced(function* <R>(projection: Projection<R>, oneAtATime: Semaphore.Semaphore) {
  yield* clear(projection)
  for (;;) {
    const { live, build: under } = yield* runsOf(projection.name)
    const isOutdated = live !== null && live.version < projection.version
    const run = under ?? (isOutdated ? yield* beginBuild(projection) : null)
    // One of an older fold gives way to ours.
    if (run !== null && isOutdated && run.version < projection.version) yield* beginBuild(projection)
    else if (run !== null && run.version <= projection.version && !run.live) {
      yield* Effect.logInfo(`building ${projection.name} anew beside what is live, from fact ${run.facts} on`)
      if (yield* catchUp(projection, run, oneAtATime)) {
        yield* Effect.logInfo(`${projection.name} was built anew and took its place`)
        yield* clear(projection)
      } else yield* Effect.sleep(PAUSE_OVERTAKEN)
    }
    yield* Effect.sleep(PAUSE_NO_BUILD)
  }
})

/** Folds until the build meets the live one and takes its place; false when somebody else is at it. */
const catchUp = Effect.fnUntraced(function* <R>(projection: Projection<R>, from: Run, oneAtATime: Semaphore.Semaphore) {
  const log = yield* LogReader
  const { swap } = yield* Projections
  let run = from
  let isNear = false
  for (;;) {
    const facts = yield* log.read(run.position, BUILD_AT_ONCE)
    isNear = facts.length < BUILD_AT_ONCE
    if (!isNear) {
      const next = yield* oneAtATime.withPermits(1)(take(projection, run, facts))
      if (next === null) return false
      run = next
      continue
    }
    // Both move, so it goes to where the live one stands and hopes to find it there still.
    const { live, build: under } = yield* runsOf(projection.name)
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

/** Tells of a transaction that keeps everybody from reading on, once when it is noticed. */
const logStalls = Effect.gen(function* () {
  let reportedPid: number | null = null
  for (;;) {
    const stall = yield* (yield* Projections).stall(STALL_AFTER)
    if (stall !== null && stall.pid !== reportedPid) {
      const seconds = Math.round(Duration.toSeconds(DateTime.distance(stall.since, yield* DateTime.now)))
      yield* Effect.logWarning(
        `no projection can read on: a transaction of process ${stall.pid} (${stall.application}) is open for ${seconds} s`
      )
    }
    reportedPid = stall?.pid ?? null
    yield* Effect.sleep(STALL_AFTER)
  }
})

/** Runs until interrupted. */
export const keepProjections = Effect.suspend(() => {
  // What is far behind takes oneAtATime, live or built anew: all at once would keep every core from those who wait for an answer.
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

/** One step of everything that is live; answers the most that was new to any. */
export const projectOnce = Effect.fnUntraced(function* () {
  let news = 0
  for (const projection of projections) {
    const run = (yield* runsOf(projection.name)).live ?? (yield* beginBuild(projection))
    const facts = yield* (yield* EventStore).readAll(run.position, FOLLOW_AT_ONCE)
    if (facts.length > 0) yield* take(projection, run, facts)
    news = Math.max(news, facts.length)
  }
  return news
})
