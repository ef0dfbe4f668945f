/**
 * Removes what is not needed any more: marks of applied changes that the log was followed beyond, reservations that a crash
 * left behind, and the streams of deleted messages and journals.
 */
import { Effect } from "effect"
import { Ledger } from "../../application/ports/Ledger.ts"
import { streamOf } from "../../domain/streams.ts"
import { EventStoreDb } from "./EventStoreDb.ts"

const AT_ONCE = 100
export const REMOVALS_AT_ONCE = 8

/** The log was followed up to `followedTo`. */
export const tidy = Effect.fnUntraced(function* (followedTo: bigint) {
  const db = yield* EventStoreDb
  const ledger = yield* Ledger
  yield* ledger.tidy(followedTo)
  yield* removeForgotten
  const left = yield* ledger.leftBehind(AT_ONCE)
  const never = yield* Effect.filter(left, ({ id, messageId }) =>
    Effect.map(db.read(streamOf(messageId)), (events) => events.every((event) => event.id !== id))
  )
  if (never.length > 0) yield* ledger.withdraw(never.map(({ id }) => id))
})

/** Stretch by stretch, until none is left: each is gone there before the ledger hears of it. */
const removing = Effect.fnUntraced(function* <A, B, E, R, E2, R2, E3, R3>(
  some: Effect.Effect<ReadonlyArray<A>, E, R>,
  remove: (one: A) => Effect.Effect<B, E2, R2>,
  removed: (some: ReadonlyArray<A>) => Effect.Effect<void, E3, R3>
) {
  for (;;) {
    const stretch = yield* some
    if (stretch.length === 0) return
    yield* Effect.forEach(stretch, remove, { concurrency: REMOVALS_AT_ONCE, discard: true })
    yield* removed(stretch)
  }
})

export const removeForgotten = Effect.gen(function* () {
  const db = yield* EventStoreDb
  const ledger = yield* Ledger
  yield* removing(ledger.forgotten(AT_ONCE), ({ stream }) => db.remove(stream), ledger.forgot)
})
