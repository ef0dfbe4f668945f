/**
 * What memory and Postgres promise, with the streams in EventStoreDB. One server for all tests: they must not meet in it.
 * Suites of ports that neither read nor write messages (endpoints, keys, lists …) are not run again: their adapters and
 * their tables are the same.
 */
import { afterAll, describe } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import * as Channels from "../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../src/setup/postgresPorts.ts"
import { orderContract } from "../../contracts/deliver/orderContract.ts"
import { queueContract } from "../../contracts/deliver/queueContract.ts"
import { circuitsContract } from "../../contracts/destinations/circuitsContract.ts"
import { erasuresContract } from "../../contracts/erasures/erasuresContract.ts"
import { eventsContract } from "../../contracts/events/eventsContract.ts"
import { parkedContract } from "../../contracts/log/parkedContract.ts"
import { bodiesContract } from "../../contracts/messages/bodiesContract.ts"
import { providerMessagesContract } from "../../contracts/receipts/providerMessagesContract.ts"
import { replaysContract } from "../../contracts/replays/replaysContract.ts"
import { followersContract, retentionContract } from "../../contracts/retention/retentionContract.ts"
import { archiveContract, derivedContract } from "../../contracts/store/archiveContract.ts"
import { eventStoreContract } from "../../contracts/store/eventStoreContract.ts"
import { eventStore } from "../../servers/eventStore.ts"
import { eventStoreUrl } from "../../servers/eventStoreUrl.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import { insisting, troubled } from "./insisting.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const scope = Scope.makeUnsafe()
const server = Effect.runPromise(Scope.provide(eventStoreUrl, scope))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const portsOf = (trouble = insisting, { own = false } = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const there = own ? (yield* eventStore()).url : yield* Effect.promise(() => server)
      const streams = EventStoreDb.layer(Redacted.make(there), "wait")
      return PostgresPorts.layerOverStreams({ url, encryptionKey }).pipe(
        Layer.merge(PostgresPorts.truthOverStreams({ url })),
        Layer.provide(trouble.pipe(Layer.provide(streams))),
        Layer.merge(Channels.unused)
      )
    })
  )
const ports = portsOf()

describe.concurrent("a store in EventStoreDB", () => {
  eventStoreContract("eventstoredb", ports)
  eventStoreContract("eventstoredb, whose answers are late and lost,", portsOf(troubled))
  retentionContract("eventstoredb", ports)
  followersContract("eventstoredb", ports)
  // The same streams can't be in one server twice.
  archiveContract("eventstoredb", portsOf(insisting, { own: true }))
  derivedContract("eventstoredb", portsOf(insisting, { own: true }))
  queueContract("eventstoredb", ports)
  queueContract("eventstoredb, whose answers are late and lost,", portsOf(troubled))
  parkedContract("eventstoredb", ports)
  eventsContract("eventstoredb", ports)
  bodiesContract("eventstoredb", ports)
  orderContract("eventstoredb, whose answers are late and lost,", portsOf(troubled))
  providerMessagesContract("eventstoredb", ports)
  replaysContract("eventstoredb", ports)
  circuitsContract("eventstoredb", ports)
  erasuresContract("eventstoredb", ports)
})
