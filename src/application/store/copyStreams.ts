/**
 * Copies every stream from one store into another that uses the same database for everything else. The source is not
 * changed. At the end both logs are read side by side: they may differ in positions and nothing else.
 *
 * A copy that was cut off is repeated and goes on where it ended; so does a copy of a source that has grown since.
 */
import { DateTime, Effect, Pull, Schema, Stream } from "effect"
import type { LoggedFact } from "../ports/EventStore.ts"
import { type Log, logStream } from "./logStream.ts"
import { isSame, writeHistory } from "./writeHistory.ts"

/** The facts in the target are not the facts of the source. */
export class NotTheSame extends Schema.TaggedError<NotTheSame>()("NotTheSame", {
  position: Schema.Int,
  problem: Schema.String
}) {
  override get message(): string {
    return `the copy differs from its source at fact ${this.position}: ${this.problem}`
  }
}

export const copyStreams = Effect.fnUntraced(function* (
  from: Log,
  to: Log,
  progress: (taken: { readonly known: number; readonly written: number }) => Effect.Effect<void>
) {
  const facts = Stream.map(logStream(from), (fact) => ({ fact, besideFacts: null }))
  const taken = yield* writeHistory(facts, to, progress)
  const compared = yield* compareLogs(from, to)
  return { ...taken, compared }
})

const AT_ONCE = 2_000

/** The number of facts in both logs, in the same order. */
export const compareLogs = (one: Log, other: Log) =>
  Effect.scoped(
    Effect.gen(function* () {
      const nextOfOther = yield* Stream.toPull(Stream.rechunk(logStream(other), AT_ONCE))
      let there: ReadonlyArray<LoggedFact> = []
      let compared = 0
      const pull = Pull.catchDone(nextOfOther, () => Effect.succeed([] as ReadonlyArray<LoggedFact>))
      yield* logStream(one).pipe(
        Stream.rechunk(AT_ONCE),
        Stream.runForEachArray(
          Effect.fnUntraced(function* (facts) {
            while (there.length < facts.length) {
              const more = yield* pull
              if (more.length === 0) {
                return yield* new NotTheSame({ position: compared + there.length + 1, problem: "the copy ends here" })
              }
              there = [...there, ...more]
            }
            for (const [nth, fact] of facts.entries()) {
              if (isSame(fact, there[nth]!)) continue
              const problem = `${textOf(fact)} became ${textOf(there[nth]!)}`
              return yield* new NotTheSame({ position: compared + nth + 1, problem })
            }
            there = there.slice(facts.length)
            compared += facts.length
          })
        )
      )
      if (there.length > 0 || (yield* pull).length > 0) {
        return yield* new NotTheSame({ position: compared + 1, problem: "the copy goes on, and its source does not" })
      }
      return compared
    })
  )

const textOf = ({ stream, version, name, at, actor, data }: LoggedFact): string =>
  JSON.stringify([stream, version, name, DateTime.toEpochMillis(at), actor, data])
