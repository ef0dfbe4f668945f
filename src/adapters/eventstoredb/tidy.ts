/**
 * Removes what is not needed any more: marks of applied changes that the log was followed beyond, reservations that a crash
 * left behind, the streams of forgotten messages, and forgotten fronts of journals.
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
  yield* removeFronts
  const left = yield* ledger.leftBehind(AT_ONCE)
  const never = yield* Effect.filter(left, ({ id, messageId }) =>
    Effect.map(db.read(streamOf(messageId)), (events) => events.every((event) => event.id !== id))
  )
  if (never.length > 0) yield* ledger.withdraw(never.map(({ id }) => id))
})

export const removeForgotten = Effect.gen(function* () {
  const db = yield* EventStoreDb
  const ledger = yield* Ledger
  for (;;) {
    const forgotten = yield* ledger.forgotten(AT_ONCE)
    if (forgotten.length === 0) return
    yield* Effect.forEach(forgotten, ({ stream }) => db.remove(stream), {
      concurrency: REMOVALS_AT_ONCE,
      discard: true
    })
    yield* ledger.forgot(forgotten)
  }
})

export const removeFronts = Effect.gen(function* () {
  const db = yield* EventStoreDb
  const ledger = yield* Ledger
  for (;;) {
    const fronts = yield* ledger.forgottenFronts(AT_ONCE)
    if (fronts.length === 0) return
    yield* Effect.forEach(fronts, ({ stream, version }) => db.beginAt(stream, version - 1), {
      concurrency: REMOVALS_AT_ONCE,
      discard: true
    })
    yield* ledger.forgotFronts(fronts)
  }
})
