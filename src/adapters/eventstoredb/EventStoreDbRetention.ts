/**
 * Ends the stream of a message in EventStoreDB for good before PostgreSQL deletes the message, and only if nothing was appended since its
 * view was made: whoever appends meanwhile was first, and the message stays. A crash in between leaves a stream that is gone and a
 * message that the next pass deletes.
 */
import { Effect, Layer } from "effect"
import type { Ledger } from "../../application/ports/Ledger.ts"
import { Retention } from "../../application/ports/Retention.ts"
import { streamOf } from "../../domain/streams.ts"
import { EventStoreDb } from "./EventStoreDb.ts"
import { REMOVALS_AT_ONCE, removeForgotten } from "./tidy.ts"

/** Over a retention of everything else. */
export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const retention = yield* Retention
    const db = yield* EventStoreDb
    const services = yield* Effect.context<EventStoreDb | Ledger>()
    const remove = Effect.ignore(Effect.provideContext(removeForgotten, services))
    return Retention.of({
      ...retention,
      forget: Effect.fnUntraced(function* (messages) {
        const ended = yield* Effect.filter(messages, ({ id, version }) => db.removeForGood(streamOf(id), version), {
          concurrency: REMOVALS_AT_ONCE
        })
        return yield* retention.forget(ended)
      }),
      forgetEvents: (...asked) => Effect.tap(retention.forgetEvents(...asked), remove),
      forgetDestinations: (...asked) => Effect.tap(retention.forgetDestinations(...asked), remove)
    })
  })
)
