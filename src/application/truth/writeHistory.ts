/**
 * Writes a whole history into a store, in one pass and in its order. The store has to be empty or hold exactly its
 * beginning, then the writing goes on there: one that was cut off can be repeated. Another store is left as it is. The
 * data of a message is written before its first fact. restoreDerived.ts derives the rest.
 */
import { type Array as Arr, DateTime, Effect, Pull, Result, Schema, Stream } from "effect"
import type { ArchivedFact } from "../ports/Archive.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { MessageData } from "../ports/MessageData.ts"
import { isOfEvent, isOfMessage, type Line } from "./archiveFile.ts"
import { type Log, logStream } from "./logStream.ts"

export class OtherHistory extends Schema.TaggedError<OtherHistory>()("OtherHistory", {
  position: Schema.Int,
  found: Schema.String,
  offered: Schema.String
}) {
  override get message(): string {
    return `the store is not empty, and holds another history: its fact ${this.position} is ${this.found}, and ${this.offered} was to come in`
  }
}

export interface WrittenHistory {
  readonly known: number
  readonly written: number
  /** The store goes on where this history ends: nothing is left to write. */
  readonly isOlder: boolean
}

const AT_ONCE = 2_000

export type Incoming = Omit<Line, "position">

export const writeHistory = <E, R>(
  incoming: Stream.Stream<Incoming, E, R>,
  log: Log,
  progress: (taken: { readonly known: number; readonly written: number }) => Effect.Effect<void>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const dataOfMessages = yield* MessageData
      const next = yield* Stream.toPull(Stream.rechunk(logStream(log), AT_ONCE))
      let there: ReadonlyArray<LoggedFact> = []
      let hasMore = true
      let known = 0
      let written = 0
      const fill = Effect.fnUntraced(function* (count: number) {
        while (hasMore && there.length < count) {
          const more = yield* Pull.catchDone(next, () => Effect.succeed(null))
          if (more === null) hasMore = false
          else there = [...there, ...more]
        }
      })
      yield* incoming.pipe(
        Stream.rechunk(AT_ONCE),
        Stream.runForEachArray(
          Effect.fnUntraced(function* (lines: Arr.NonEmptyReadonlyArray<Incoming>) {
            if (written === 0) yield* fill(lines.length)
            const same = Math.min(lines.length, there.length)
            for (let nth = 0; nth < same; nth++) {
              const [found, offered] = [there[nth]!, lines[nth]!.fact]
              if (!isSame(found, offered)) {
                return yield* new OtherHistory({
                  position: known + nth + 1,
                  found: nameOf(found),
                  offered: nameOf(offered)
                })
              }
            }
            there = there.slice(same)
            known += same
            const fresh = lines.slice(same)
            if (fresh.length > 0) {
              const data = fresh.flatMap(({ besideFacts }) => besideFacts ?? [])
              yield* dataOfMessages.restore(data.filter(isOfMessage))
              yield* dataOfMessages.restoreEvents(data.filter(isOfEvent))
              yield* log.archive.restore(fresh.map(({ fact }) => fact))
              written += fresh.length
            }
            yield* progress({ known, written })
          })
        )
      )
      yield* fill(1)
      return { known, written, isOlder: there.length > 0 } satisfies WrittenHistory
    })
  )

/** Positions are not compared. A store may keep JSON in another form than it was written in. */
export const isSame = (one: ArchivedFact, other: ArchivedFact): boolean =>
  one.stream === other.stream &&
  one.version === other.version &&
  one.name === other.name &&
  one.actor === other.actor &&
  DateTime.Equivalence(one.at, other.at) &&
  (one.data === other.data || formOf(one.data) === formOf(other.data))

const formOf = (data: string): string =>
  Result.getOrElse(
    Result.try(() => JSON.stringify(JSON.parse(data))),
    () => data
  )

const nameOf = ({ stream, version, name }: ArchivedFact): string => `${name} of ${stream}, version ${version},`
