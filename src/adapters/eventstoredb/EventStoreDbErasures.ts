/**
 * Erasures where facts are sealed in EventStoreDB. PostgreSQL throws the keys away with all it erases, in one transaction, and names the
 * streams; what is left to do here is to look whether they have facts from before they were sealed. Such facts can't be changed, so a
 * message that has one is forgotten as a whole, as retention forgets it, and the copy of a journal that has one ends. An erasure does not
 * end before all of its streams were looked at, by whoever works on it.
 *
 *   erased    PostgreSQL has erased everything of the stream, and its key is gone
 *   look      nothing of its events is in the clear: that was all
 *   remove    otherwise the stream ends for good, if nothing was appended since
 *   forget    PostgreSQL forgets the message, and the stream is no longer looked at
 *
 * A crash between any two leaves the stream to be looked at again; one that is gone is forgotten. EventStoreDB gives up the bytes of a
 * stream that ended at its next scavenge.
 */
import { Effect, Layer } from "effect"
import { Erasures } from "../../application/ports/Erasures.ts"
import { Retention } from "../../application/ports/Retention.ts"
import { StreamKeys } from "../../application/ports/StreamKeys.ts"
import { messageOf, streamOf } from "../../domain/streams.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { isClear } from "./sealedFacts.ts"
import { REMOVALS_AT_ONCE } from "./tidy.ts"

const AT_ONCE = 400

/** Over erasures in PostgreSQL. */
export const layer = Layer.effect(
  Erasures,
  Effect.gen(function* () {
    const erasures = yield* Erasures
    const db = yield* EventStoreDb
    const retention = yield* Retention
    const keys = yield* StreamKeys

    const look = Effect.fnUntraced(function* (stream: string) {
      const events = yield* db.read(stream)
      const last = events.at(-1)
      if (last === undefined) return { stream, isOver: true, isGone: true }
      if (!events.some(isClear)) return { stream, isOver: true, isGone: false }
      const isGone = yield* db.removeForGood(stream, last.revision + 1)
      return { stream, isOver: isGone, isGone }
    })

    const lookAtErased = Effect.gen(function* () {
      const streams = yield* keys.erased(AT_ONCE)
      if (streams.length === 0) return
      const looked = yield* Effect.forEach(streams, look, { concurrency: REMOVALS_AT_ONCE })
      const forgotten = looked.flatMap(({ stream, isGone }) => (isGone ? (messageOf(stream) ?? []) : []))
      // Its streams are gone, so no version of it is later than any other.
      const deleted = yield* retention.forget(forgotten.map((id) => ({ id, version: 0 })))
      if (deleted === null) return
      const over = looked.flatMap(({ stream, isOver }) => (isOver ? stream : []))
      yield* keys.lookedAt(over, forgotten.map(streamOf))
    })

    return Erasures.of({
      ...erasures,
      erase: (job, messages, events) =>
        Effect.tap(erasures.erase(job, messages, events), (isDone) => (isDone ? lookAtErased : Effect.void)),
      close: Effect.fnUntraced(function* (job) {
        if (yield* erasures.close(job)) return true
        yield* lookAtErased
        return yield* erasures.close(job)
      })
    })
  })
)
