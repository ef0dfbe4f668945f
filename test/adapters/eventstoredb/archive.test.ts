/** Every store is a server of its own: the same streams can't be in one server twice. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as EventStoreDbPorts from "../../../src/adapters/eventstoredb/EventStoreDbPorts.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { asWorker } from "../../contracts/deliver/claims.ts"
import { delivered, newOrg, now, opened, settled, started } from "../../contracts/sample.ts"
import { archiveContract, derivedContract } from "../../contracts/store/archiveContract.ts"
import { eventStore } from "../../servers/eventStore.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const ports = Layer.unwrap(
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const server = yield* eventStore()
    const postgres = { url, encryptionKey: Redacted.make(new Uint8Array(32).fill(7)) }
    return EventStoreDbPorts.truth(Redacted.make(server.url)).pipe(
      Layer.provideMerge(
        Layer.merge(PostgresPorts.truthWithoutStreams(postgres), PostgresPorts.withoutStreams(postgres))
      )
    )
  })
)

describe("a database that moves its streams to EventStoreDB", () => {
  it.live(
    "keeps every message where it was: what waits is handed out once, what was sent is not, and nothing is left behind",
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const server = yield* eventStore()
        const streams = Redacted.make(server.url)
        const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
        const orgId = newOrg()
        const idempotency = { orgId, key: "order 17", requestHash: "h" }
        const [waiting, sent] = [opened({ orgId, idempotency }), opened()]
        const facts = yield* Effect.gen(function* () {
          const store = yield* EventStore
          yield* store.append([waiting.entry, sent.entry])
          const claim = yield* (yield* Queue).claim(asWorker("test"))
          const start = started(sent.after, { fence: claim!.batch })
          yield* store.append([start.entry])
          yield* store.append([settled(start.after, delivered, { fence: claim!.batch }).entry])
          yield* (yield* Journals).append("replay-17", 0, [{ name: "ReplayRequested@1", data: '{"n":1}' }], now(), null)
          const { messages, batch } = claim!
          yield* (yield* Queue).release(
            batch,
            messages.filter(({ messageId }) => messageId === waiting.after.id)
          )
          return yield* store.readAll(null, 100)
        }).pipe(Effect.provide(PostgresPorts.layer({ url, encryptionKey })))

        yield* Effect.gen(function* () {
          const archive = yield* Archive
          yield* archive.restore(facts)
          yield* archive.adopt
        }).pipe(
          Effect.provide(
            EventStoreDbPorts.truth(streams).pipe(Layer.provideMerge(PostgresPorts.truthWithoutStreams({ url })))
          )
        )

        yield* Effect.gen(function* () {
          const store = yield* EventStore
          const log = (logged: typeof facts) => logged.map(({ position: _, ...fact }) => fact)
          expect(log(yield* store.readAll(null, 100))).toEqual(log(facts))
          // Time enough for the follower to make something of it.
          yield* Effect.sleep("1 second")
          expect((yield* store.extent).facts).toBe(facts.length)
          const claim = yield* (yield* Queue).claim(asWorker("test"))
          expect(claim!.messages.map(({ messageId }) => messageId)).toEqual([waiting.after.id])
          expect(claim!.messages[0]!.body).toBe(waiting.entry.opening!.body)
          expect(yield* store.acceptedUnder(orgId, "order 17")).toMatchObject({ messageId: waiting.after.id })
          const start = started(waiting.after, { fence: claim!.batch })
          expect(yield* store.append([start.entry])).toEqual([{ type: "Appended", version: 2 }])
        }).pipe(
          Effect.provide(
            EventStoreDbPorts.layer(streams).pipe(
              Layer.provideMerge(PostgresPorts.withoutStreams({ url, encryptionKey }))
            )
          )
        )

        const back = yield* Effect.flip(Layer.build(PostgresPorts.layer({ url, encryptionKey })))
        expect(String(back)).toContain("set EVENTSTORE_URL")
      }).pipe(Effect.scoped),
    300_000
  )
})

archiveContract("eventstoredb", ports)
derivedContract("eventstoredb", ports)
