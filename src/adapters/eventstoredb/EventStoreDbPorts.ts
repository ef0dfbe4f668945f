/** The event store over EventStoreDB, with what keeps its ledger true running beside it. */
import { randomUUID } from "node:crypto"
import { Effect, Layer, type Redacted } from "effect"
import { Ledger } from "../../application/ports/Ledger.ts"
import * as EventStoreDb from "./EventStoreDb.ts"
import * as EventStoreDbArchive from "./EventStoreDbArchive.ts"
import * as EventStoreDbErasures from "./EventStoreDbErasures.ts"
import * as EventStoreDbEventStore from "./EventStoreDbEventStore.ts"
import * as EventStoreDbEvents from "./EventStoreDbEvents.ts"
import * as EventStoreDbJournals from "./EventStoreDbJournals.ts"
import * as EventStoreDbRetention from "./EventStoreDbRetention.ts"
import { followQueue } from "./followQueue.ts"
import { forwardJournals } from "./forwardJournals.ts"

/** Names this process among those that could follow the log. */
const followers = Layer.effectDiscard(
  Effect.gen(function* () {
    const holder = randomUUID()
    const ledger = yield* Ledger
    // Others need not wait for our lease.
    yield* Effect.addFinalizer(() => Effect.ignore(ledger.leave(holder)))
    yield* Effect.forkScoped(followQueue(holder))
    yield* Effect.forkScoped(forwardJournals(holder))
  })
)

/** Over a connection, and all ports of Postgres but the event store, of which it replaces some. */
export const ports = Layer.mergeAll(
  EventStoreDbArchive.layer,
  EventStoreDbJournals.layer,
  EventStoreDbRetention.layer,
  EventStoreDbErasures.layer,
  followers,
  EventStoreDbEvents.layer
).pipe(Layer.provideMerge(EventStoreDbEventStore.layer))

export const layer = (url: Redacted.Redacted) => ports.pipe(Layer.provide(EventStoreDb.layer(url, "wait")))

/** What reads, checks and moves the ground truth itself, over the same of Postgres. It follows nothing. */
export const truth = (url: Redacted.Redacted) =>
  EventStoreDbArchive.layer.pipe(
    Layer.provideMerge(Layer.merge(EventStoreDbEventStore.layer, EventStoreDbJournals.layer)),
    Layer.provide(EventStoreDb.layer(url, "fail"))
  )
