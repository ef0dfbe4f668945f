/**
 * What memory and Postgres promise, with the streams in EventStoreDB. One server for all tests: they must not meet in it.
 * Suites of ports that neither read nor write messages (endpoints, keys, lists …) are not run again: their adapters and
 * their tables are the same.
 */
import { afterAll, describe } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import * as EventStoreDbPorts from "../../../src/adapters/eventstoredb/EventStoreDbPorts.ts"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
import * as Channels from "../../../src/setup/channels.ts"
import { orderContract } from "../../contracts/deliver/orderContract.ts"
import { queueContract } from "../../contracts/deliver/queueContract.ts"
import { setAsideContract } from "../../contracts/deliver/setAsideContract.ts"
import { circuitsContract } from "../../contracts/destinations/circuitsContract.ts"
import { erasuresContract } from "../../contracts/erasures/erasuresContract.ts"
import { eventsContract } from "../../contracts/events/eventsContract.ts"
import { parkedContract } from "../../contracts/log/parkedContract.ts"
import { bodiesContract } from "../../contracts/messages/bodiesContract.ts"
import { providerMessagesContract } from "../../contracts/receipts/providerMessagesContract.ts"
import { replaysContract } from "../../contracts/replays/replaysContract.ts"
import { retentionContract } from "../../contracts/retention/retentionContract.ts"
import { eventStoreContract } from "../../contracts/store/eventStoreContract.ts"
import { journalsContract } from "../../contracts/store/journalsContract.ts"
import { eventStoreUrl } from "../../servers/eventStoreUrl.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import * as patient from "./patient.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const scope = Scope.makeUnsafe()
const server = Effect.runPromise(Scope.provide(eventStoreUrl, scope))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const portsOf = (seals: { readonly sealsBodies?: boolean; readonly sealsFacts?: boolean } = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const streams = Redacted.make(yield* Effect.promise(() => server))
      return EventStoreDbPorts.ports.pipe(
        Layer.provide(patient.layer(streams)),
        Layer.provideMerge(PostgresPorts.withoutStreams({ url, encryptionKey, ...seals })),
        Layer.merge(Channels.unused)
      )
    })
  )
const ports = portsOf()
const sealed = portsOf({ sealsFacts: true })

// These look at the whole log, which all tests share.
eventStoreContract("eventstoredb", ports)
journalsContract("eventstoredb", ports)
retentionContract("eventstoredb", ports)

// These look at their own database, and many of them wait: they wait together.
describe.concurrent("a store in EventStoreDB", () => {
  queueContract("eventstoredb", ports)
  setAsideContract("eventstoredb", ports)
  parkedContract("eventstoredb", ports)
  eventsContract("eventstoredb, sealed,", sealed)
  bodiesContract("eventstoredb", ports)
  bodiesContract("eventstoredb, sealed,", portsOf({ sealsBodies: true }))
  orderContract("eventstoredb", ports)
  providerMessagesContract("eventstoredb, sealed,", sealed)
  replaysContract("eventstoredb, sealed,", sealed)
  circuitsContract("eventstoredb", ports)
  erasuresContract("eventstoredb, sealed,", sealed)
})
