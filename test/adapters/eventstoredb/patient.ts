/**
 * The connection for contracts on a busy machine, where an answer may take longer than callers of the product are kept waiting: a call
 * that was not answered is made again. Each may be: an append goes with the same event ids on the same revision, which the server takes
 * once, and is never refused for its own earlier try.
 */
import { Effect, Layer, type Redacted, Schedule } from "effect"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"

const again = Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 minute" }))
const insisting =
  <Args extends ReadonlyArray<unknown>, A>(ask: (...args: Args) => Effect.Effect<A, StoreUnavailable>) =>
  (...args: Args) =>
    Effect.retry(ask(...args), again)

export const layer = (url: Redacted.Redacted) =>
  Layer.effect(
    EventStoreDb.EventStoreDb,
    Effect.map(EventStoreDb.EventStoreDb, (db) =>
      EventStoreDb.EventStoreDb.of({
        append: insisting(db.append),
        read: insisting(db.read),
        readAll: insisting(db.readAll),
        remove: insisting(db.remove),
        removeForGood: insisting(db.removeForGood),
        // Whoever follows begins again by itself.
        follow: db.follow
      })
    )
  ).pipe(Layer.provide(EventStoreDb.layer(url, "wait")))
