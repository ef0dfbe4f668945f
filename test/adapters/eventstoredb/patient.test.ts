import { describe, expect, it } from "@effect/vitest"
import { jsonEvent } from "@eventstore/db-client"
import { Effect, Layer, Redacted } from "effect"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import { eventStore, eventsOf } from "../../servers/eventStore.ts"
import * as patient from "./patient.ts"

const event = () => jsonEvent({ type: "MessageQueued@1", data: {} })

describe("a connection with patience", () => {
  it.live.each(["silent", "lostAnswer"] as const)(
    "appends once where a server is slower than the product waits (%s)",
    (fault) =>
      Effect.gen(function* () {
        const server = yield* eventStore()
        const url = Redacted.make(server.url)
        const strike = Effect.sync(() => server.inject({ rpc: "append", fault, times: 4 }))
        const append = (stream: string) =>
          Effect.flatMap(EventStoreDb.EventStoreDb, (db) => db.append(stream, 0, [event()]))
        yield* Effect.gen(function* () {
          yield* strike
          expect(yield* append("message-one")).toMatchObject({ type: "Appended" })
          expect(yield* append("message-one")).toEqual({ type: "WrongExpectedVersion" })
        }).pipe(Effect.provide(Layer.fresh(patient.layer(url))))
        expect(eventsOf(server, "message-one")).toHaveLength(1)
        server.heal()
        yield* strike
        const inTheProduct = append("message-two").pipe(Effect.provide(Layer.fresh(EventStoreDb.layer(url, "wait"))))
        expect(yield* Effect.flip(inTheProduct)).toMatchObject({ _tag: "StoreUnavailable" })
      }).pipe(Effect.scoped)
  )
})
