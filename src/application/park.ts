/** Parks streams that can't be processed, so that work goes on without them (Parked.ts). */
import { Effect, Result } from "effect"
import { UnreadableFact } from "../domain/recorded.ts"
import type { LoggedFact } from "./ports/EventStore.ts"
import { Parked } from "./ports/Parked.ts"

export interface Processed<A> {
  readonly answer: A
  readonly parked: ReadonlySet<string>
}

/**
 * Does `work` on facts of the log, without the streams it fails on. It may run several times, with fewer facts, so it
 * must change nothing.
 */
export const parking = Effect.fnUntraced(function* <A, E, R>(
  facts: ReadonlyArray<LoggedFact>,
  work: (facts: ReadonlyArray<LoggedFact>) => Effect.Effect<A, E, R>
) {
  const whole = yield* tried(work(facts))
  if (Result.isSuccess(whole)) return { answer: whole.success, parked: new Set() } satisfies Processed<A>
  const defects = new Map<string, unknown>()
  const streams = Map.groupBy(facts, ({ stream }) => stream)
  for (const [stream, own] of streams) {
    const alone = yield* tried(work(own))
    if (Result.isFailure(alone)) defects.set(stream, alone.failure)
  }
  // A failure that all of several streams share is no stream's fault.
  const isShared = defects.size > 1 && defects.size === streams.size
  if (isShared && ![...defects.values()].some(isUnreadable)) return yield* Effect.die(whole.failure)
  const answer = yield* work(facts.filter(({ stream }) => !defects.has(stream)))
  yield* park(defects)
  return { answer, parked: new Set(defects.keys()) } satisfies Processed<A>
})

const tried = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<Result.Result<A, unknown>, E, R> =>
  work.pipe(
    Effect.map((answer) => Result.succeed(answer)),
    Effect.catchDefect((defect) => Effect.succeed(Result.fail(defect)))
  )

/**
 * Parks streams with the defect of each, and logs it once. An unreadable fact is named and not quoted: it may hold
 * personal data.
 */
export const park = Effect.fnUntraced(function* (defects: ReadonlyMap<string, unknown>) {
  const reasons = new Map([...defects].map(([stream, defect]) => [stream, reasonOf(defect)] as const))
  for (const stream of yield* (yield* Parked).park(reasons)) {
    const defect = defects.get(stream)
    const text = `${stream} is parked: it can't be processed`
    const said = defect instanceof UnreadableFact ? [`${text}: ${defect.name}`] : [text, defect]
    yield* Effect.logError(...said).pipe(Effect.annotateLogs({ stream, reason: reasons.get(stream) }))
  }
})

const isUnreadable = (defect: unknown) => defect instanceof UnreadableFact
const reasonOf = (defect: unknown) => (isUnreadable(defect) ? "unreadable" : "failed")
