/** A message that PostgreSQL forgets is removed from EventStoreDB too: at once, or when it can be reached again (tidy.ts). */
import { Effect, Layer } from "effect"
import type { Ledger } from "../../application/ports/Ledger.ts"
import { Retention } from "../../application/ports/Retention.ts"
import type { EventStoreDb } from "./EventStoreDb.ts"
import { removeForgotten } from "./tidy.ts"

/** Over a retention of everything else. */
export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { sweep, sweepEvents, sweepDeeds } = yield* Retention
    const services = yield* Effect.context<EventStoreDb | Ledger>()
    const remove = Effect.ignore(Effect.provideContext(removeForgotten, services))
    return Retention.of({
      sweep: (...asked) => Effect.tap(sweep(...asked), remove),
      sweepEvents: (...asked) => Effect.tap(sweepEvents(...asked), remove),
      sweepDeeds: (...asked) => Effect.tap(sweepDeeds(...asked), remove)
    })
  })
)
