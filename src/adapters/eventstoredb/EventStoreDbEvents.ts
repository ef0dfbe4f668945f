/**
 * Events where each message's stream is a write of its own in EventStoreDB. The event is stored in PostgreSQL, in one
 * transaction with its key, its body and the first fact of every message it owes: from then on it is published, and
 * nothing but time keeps a message from being stored.
 *
 *   owe      the event and all it owes, or nothing
 *   append   the messages, like any others; each takes its place in the queue as it is stored
 *   settle   it is no longer owed
 *
 * After a crash between any two, the messages are found as owed and appended again, by any process. One that was there
 * already is refused by its version, because its id is made of event and destination. Until then a reader sees the
 * event with all it matched, and fewer messages than that; no endpoint is ever left out.
 */
import { Effect, Layer, Result } from "effect"
import { background } from "../../application/background.ts"
import { entryOf } from "../../application/entry.ts"
import { type Append, EventStore } from "../../application/ports/EventStore.ts"
import { Events } from "../../application/ports/Events.ts"
import { Ledger, type OwedMessage } from "../../application/ports/Ledger.ts"
import { initial } from "../../domain/message/decider.ts"
import { fromRecorded } from "../../domain/message/recorded.ts"

const AT_ONCE = 500
const LOOK_EVERY = "2 seconds"

/** Stores owed messages; one that is there already is a success too. */
const storeOwed = Effect.fnUntraced(function* (messages: ReadonlyArray<Append>) {
  const store = yield* EventStore
  const ledger = yield* Ledger
  for (let from = 0; from < messages.length; from += AT_ONCE) {
    const some = messages.slice(from, from + AT_ONCE)
    yield* store.append(some)
    yield* ledger.settled(some.map(({ messageId }) => messageId))
  }
})

const entryOfOwed = ({ messageId, eventId, name, data, at, actor }: OwedMessage): Append => {
  const fact = Result.getOrThrow(fromRecorded({ name, data }))
  const opening = { body: { ofEvent: eventId }, idempotency: null }
  return entryOf(messageId, initial, 0, [fact], at, { actor, opening }).entry
}

/** Runs until interrupted: stores what whoever published could not. */
const settleDebts = background(
  "storing the messages of events",
  Effect.gen(function* () {
    const owed = yield* (yield* Ledger).owed(AT_ONCE)
    yield* storeOwed(owed.map(entryOfOwed))
    if (owed.length < AT_ONCE) yield* Effect.sleep(LOOK_EVERY)
  })
)

/** Over the events of everything else. */
export const layer = Layer.effect(
  Events,
  Effect.gen(function* () {
    const events = yield* Events
    const ledger = yield* Ledger
    const services = yield* Effect.context<EventStore | Ledger>()
    yield* Effect.forkScoped(settleDebts)
    return Events.of({
      ...events,
      publish: Effect.fnUntraced(function* (asked) {
        const results = yield* ledger.owe(asked)
        const messages = asked.flatMap((event, nth) => (results[nth]!.type === "Published" ? event.messages : []))
        // They are owed: a store that does not answer now gets them later.
        yield* storeOwed(messages).pipe(
          Effect.catch((error) => Effect.logWarning("messages of an event are stored later", error.cause)),
          Effect.provideContext(services)
        )
        return results
      })
    })
  })
)
