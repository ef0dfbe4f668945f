import { Layer } from "effect"
import { alertingContract } from "../contracts/alerts/alertingContract.ts"
import { orderContract } from "../contracts/deliver/orderContract.ts"
import { queueContract } from "../contracts/deliver/queueContract.ts"
import { backlogsContract } from "../contracts/destinations/backlogsContract.ts"
import { circuitsContract } from "../contracts/destinations/circuitsContract.ts"
import { destinationHealthContract } from "../contracts/destinations/destinationHealthContract.ts"
import { destinationsContract } from "../contracts/destinations/destinationsContract.ts"
import { erasuresContract } from "../contracts/erasures/erasuresContract.ts"
import { eventsContract } from "../contracts/events/eventsContract.ts"
import { eventTypesContract } from "../contracts/events/eventTypesContract.ts"
import { apiKeysContract } from "../contracts/keys/apiKeysContract.ts"
import { auditContract } from "../contracts/log/auditContract.ts"
import { parkedContract } from "../contracts/log/parkedContract.ts"
import { positionsContract } from "../contracts/log/positionsContract.ts"
import { projectionsContract } from "../contracts/log/projectionsContract.ts"
import { bodiesContract } from "../contracts/messages/bodiesContract.ts"
import { messageViewsContract } from "../contracts/messages/messageViewsContract.ts"
import { orgsContract } from "../contracts/orgs/orgsContract.ts"
import { processesContract } from "../contracts/processes/processesContract.ts"
import { providerMessagesContract } from "../contracts/receipts/providerMessagesContract.ts"
import { receiptInboxContract } from "../contracts/receipts/receiptInboxContract.ts"
import { replaysContract } from "../contracts/replays/replaysContract.ts"
import { commandInboxContract } from "../contracts/requests/commandInboxContract.ts"
import { followersContract, retentionContract } from "../contracts/retention/retentionContract.ts"
import { eventStoreContract } from "../contracts/store/eventStoreContract.ts"
import { journalsContract } from "../contracts/store/journalsContract.ts"
import { simulateTime } from "../simulatedTime.ts"
import * as Memory from "./Memory.ts"
import * as MemoryPorts from "./MemoryPorts.ts"
import * as MemoryCallers from "./requests/MemoryCallers.ts"

simulateTime()

erasuresContract("memory", MemoryPorts.layer)
eventStoreContract("memory", MemoryPorts.layer)
queueContract("memory", MemoryPorts.layer)
parkedContract("memory", MemoryPorts.layer)
eventsContract("memory", MemoryPorts.layer)
eventTypesContract("memory", MemoryPorts.layer)
bodiesContract("memory", MemoryPorts.layer)
destinationsContract("memory", MemoryPorts.layer)
apiKeysContract("memory", MemoryPorts.layer)
orgsContract("memory", MemoryPorts.layer)
messageViewsContract("memory", MemoryPorts.layer)
projectionsContract("memory", MemoryPorts.layer)
journalsContract("memory", MemoryPorts.layer)
providerMessagesContract("memory", MemoryPorts.layer)
receiptInboxContract("memory", MemoryPorts.layer)
replaysContract("memory", MemoryPorts.layer)
retentionContract("memory", MemoryPorts.layer)
followersContract("memory", MemoryPorts.layer)
circuitsContract("memory", MemoryPorts.layer)
backlogsContract("memory", MemoryPorts.layer)
destinationHealthContract("memory", MemoryPorts.layer)
orderContract("memory", MemoryPorts.layer)
alertingContract("memory", MemoryPorts.layer)
auditContract("memory", MemoryPorts.layer)
processesContract("memory", MemoryPorts.layer)
positionsContract("memory", MemoryPorts.layer)
commandInboxContract(
  "memory",
  Layer.merge(MemoryPorts.layerShared, MemoryCallers.layer).pipe(Layer.provide(Memory.layer))
)
