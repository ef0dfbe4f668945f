/** An event whose publisher dies after the event is stored and before its messages are. */
import { randomUUID } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as EventStoreDbPorts from "../../../src/adapters/eventstoredb/EventStoreDbPorts.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { Ledger } from "../../../src/application/ports/Ledger.ts"
import { EventId } from "../../../src/domain/ids.ts"
import * as Channels from "../../../src/setup/channels.ts"
import { newLane, newOrg, now, opened } from "../../contracts/sample.ts"
import { eventStoreUrl } from "../../servers/eventStoreUrl.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

it.live(
  "gets every message from another process, each once and with its body",
  () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const streams = Redacted.make(yield* eventStoreUrl)
      const postgres = { url, encryptionKey: Redacted.make(new Uint8Array(32).fill(7)) }
      const orgId = newOrg()
      const id = EventId.make(randomUUID())
      const steps = [newLane(), newLane(), newLane()].map((destination) =>
        opened({ orgId, destination, eventId: id, body: { ofEvent: id } })
      )
      const fact = {
        type: "EventPublished",
        ...{ orgId, eventType: "order.paid", matched: 3, correlationId: null, dossierId: null, orderingKey: null },
        ...{ metadata: null, deliverAt: null, expiresAt: null }
      } as const
      const event = { id, fact, at: now(), actor: null, body: '{"n":1.10}', idempotency: null }

      yield* Effect.gen(function* () {
        const ledger = yield* Ledger
        yield* ledger.owe([{ ...event, messages: steps.map(({ entry }) => entry) }])
      }).pipe(Effect.provide(PostgresPorts.withoutStreams(postgres)))

      yield* Effect.gen(function* () {
        const store = yield* EventStore
        const stored = () => Effect.map(store.loadMany(steps.map(({ after }) => after.id)), (found) => found.size)
        expect(yield* stored()).toBe(0)
        // One of them was stored by the dead publisher after all.
        yield* store.append([steps[0]!.entry])
        while ((yield* stored()) < 3) yield* Effect.sleep("200 millis")
        const bodies = yield* Bodies
        for (const { after } of steps) {
          expect((yield* store.load(after.id)).version).toBe(1)
          expect(yield* bodies.load(after.id)).toBe(event.body)
        }
        const { items } = yield* (yield* Events).messagesOf(id, { cursor: null, limit: 9 })
        expect(items.toSorted()).toEqual(steps.map(({ after }) => after.id).toSorted())
        const ledger = yield* Ledger
        while ((yield* ledger.owed(9)).length > 0) yield* Effect.sleep("200 millis")
      }).pipe(
        Effect.provide(
          EventStoreDbPorts.layer(streams).pipe(
            Layer.provideMerge(PostgresPorts.withoutStreams(postgres)),
            Layer.merge(Channels.unused)
          )
        )
      )
    }).pipe(Effect.scoped),
  240_000
)
