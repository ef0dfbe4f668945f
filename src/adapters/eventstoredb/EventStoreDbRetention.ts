/**
 * A message that PostgreSQL forgets is removed from EventStoreDB too: at once, or when it can be reached again (tidy.ts).
 *
 * What can still move goes the other way round: EventStoreDB ends its stream for good, and only if nothing was appended since its view
 * was made. Whoever appends meanwhile was first, and the message stays, or is told that there is none. A crash in between leaves a stream
 * that is gone and a message that the next pass forgets.
 */
import { DateTime, Effect, Layer } from "effect"
import { COMMITTED_WITHIN } from "../../application/log/readUntil.ts"
import { type JournalFront, Ledger } from "../../application/ports/Ledger.ts"
import { type Before, Retention } from "../../application/ports/Retention.ts"
import { streamOf } from "../../domain/streams.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { REMOVALS_AT_ONCE, removeForgotten, removeFronts } from "./tidy.ts"

/** Over a retention of everything else. */
export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { sweep, sweepEvents, sweepDeeds, sweepDestinations } = yield* Retention
    const db = yield* EventStoreDb
    const ledger = yield* Ledger
    const services = yield* Effect.context<EventStoreDb | Ledger>()
    const remove = Effect.ignore(Effect.provideContext(removeForgotten, services))
    const removeOld = Effect.ignore(Effect.provideContext(removeFronts, services))

    const forgetDead = Effect.fnUntraced(function* (before: Before, from: string | null, next: string | null) {
      const gone = yield* Effect.filter(
        yield* ledger.oldDead(before, from, next),
        ({ id, version }) => db.removeForGood(streamOf(id), version),
        { concurrency: REMOVALS_AT_ONCE }
      )
      if (gone.length > 0) yield* ledger.forgetDead(gone.map(({ id }) => id))
      return gone.length
    })

    const sweepBoth: typeof sweep = Effect.fnUntraced(function* (before, from, limit) {
      const swept = yield* sweep(before, from, limit)
      if (swept === null) return null
      const dead = yield* forgetDead(before, from, swept.next)
      yield* remove
      return { removed: swept.removed + dead, next: swept.next }
    })
    /** Readers of the log have read up to a time: what was not copied is not in their log. */
    const copiedOf = (before: DateTime.Utc) =>
      Effect.map(ledger.uncopiedSince, (since) =>
        since === null ? before : DateTime.min(before, DateTime.subtractDuration(since, COMMITTED_WITHIN))
      )
    /** What was not copied has no place in the log yet, and stays. */
    const placesOf = Effect.fnUntraced(function* ({ stream, version }: JournalFront) {
      const [copy] = yield* db.read(stream, version - 1, 1)
      return copy?.revision !== version - 1 || copy.position === null ? [] : [{ stream, version, place: copy.position }]
    })
    return Retention.of({
      sweep: sweepBoth,
      sweepEvents: (...asked) => Effect.tap(sweepEvents(...asked), remove),
      sweepDeeds: (...asked) => Effect.tap(sweepDeeds(...asked), remove),
      sweepFronts: Effect.fnUntraced(function* (restedBefore, from, limit) {
        const { fronts, next } = yield* ledger.restingFronts(restedBefore, from, limit)
        const placed = yield* Effect.forEach(fronts, placesOf, { concurrency: REMOVALS_AT_ONCE })
        const removed = yield* ledger.forgetFronts(restedBefore, placed.flat())
        yield* removeOld
        return removed === null ? null : { removed, next }
      }),
      sweepDestinations: (removedBefore, ...asked) =>
        copiedOf(removedBefore).pipe(
          Effect.flatMap((before) => sweepDestinations(before, ...asked)),
          Effect.tap(remove)
        )
    })
  })
)
