import { Duration, Effect, Layer, Redacted } from "effect"
import { describe } from "vitest"
import * as Channels from "../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../src/setup/postgresPorts.ts"
import { alertingContract } from "../../contracts/alerts/alertingContract.ts"
import { orderContract } from "../../contracts/deliver/orderContract.ts"
import { queueContract } from "../../contracts/deliver/queueContract.ts"
import { backlogsContract } from "../../contracts/destinations/backlogsContract.ts"
import { circuitsContract } from "../../contracts/destinations/circuitsContract.ts"
import { destinationHealthContract } from "../../contracts/destinations/destinationHealthContract.ts"
import { destinationsContract } from "../../contracts/destinations/destinationsContract.ts"
import { erasuresContract } from "../../contracts/erasures/erasuresContract.ts"
import { eventsContract } from "../../contracts/events/eventsContract.ts"
import { eventTypesContract } from "../../contracts/events/eventTypesContract.ts"
import { apiKeysContract } from "../../contracts/keys/apiKeysContract.ts"
import { auditContract } from "../../contracts/log/auditContract.ts"
import { parkedContract } from "../../contracts/log/parkedContract.ts"
import { positionsContract } from "../../contracts/log/positionsContract.ts"
import { projectionsContract } from "../../contracts/log/projectionsContract.ts"
import { bodiesContract } from "../../contracts/messages/bodiesContract.ts"
import { messageViewsContract } from "../../contracts/messages/messageViewsContract.ts"
import { orgsContract } from "../../contracts/orgs/orgsContract.ts"
import { processesContract } from "../../contracts/processes/processesContract.ts"
import { providerMessagesContract } from "../../contracts/receipts/providerMessagesContract.ts"
import { receiptInboxContract } from "../../contracts/receipts/receiptInboxContract.ts"
import { replaysContract } from "../../contracts/replays/replaysContract.ts"
import { commandInboxContract } from "../../contracts/requests/commandInboxContract.ts"
import { followersContract, retentionContract } from "../../contracts/retention/retentionContract.ts"
import { eventStoreContract } from "../../contracts/store/eventStoreContract.ts"
import { journalsContract } from "../../contracts/store/journalsContract.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import * as PostgresCallers from "../../servers/PostgresCallers.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

const freshFor = Duration.millis(20)

const ports = Layer.unwrap(
  Effect.map(freshDatabase, (url) => PostgresPorts.layer({ url, encryptionKey, freshFor }))
).pipe(Layer.merge(Channels.unused))

const portsAndCallers = Layer.unwrap(
  Effect.map(freshDatabase, (url) =>
    Layer.merge(PostgresPorts.layer({ url, encryptionKey, freshFor }), PostgresCallers.layer(url))
  )
).pipe(Layer.merge(Channels.unused))

// Each test has a database of its own, and many of them wait: they wait together.
describe.concurrent("a store in PostgreSQL", () => {
  eventStoreContract("postgres", ports)
  queueContract("postgres", ports)
  parkedContract("postgres", ports)
  erasuresContract("postgres", ports)
  eventsContract("postgres", ports)
  eventTypesContract("postgres", ports)
  bodiesContract("postgres", ports)
  destinationsContract("postgres", ports)
  apiKeysContract("postgres", ports)
  orgsContract("postgres", ports)
  messageViewsContract("postgres", ports)
  projectionsContract("postgres", ports)
  journalsContract("postgres", ports)
  providerMessagesContract("postgres", ports)
  receiptInboxContract("postgres", ports)
  replaysContract("postgres", ports)
  retentionContract("postgres", ports)
  followersContract("postgres", ports)
  circuitsContract("postgres", ports)
  backlogsContract("postgres", ports)
  destinationHealthContract("postgres", ports)
  orderContract("postgres", ports)
  alertingContract("postgres", ports)
  auditContract("postgres", ports)
  processesContract("postgres", ports)
  positionsContract("postgres", ports)
  commandInboxContract("postgres", portsAndCallers)
})
