import * as MemoryPorts from "../../../src/adapters/memory/MemoryPorts.ts"
import { alertTargetsContract } from "../../contracts/alertTargetsContract.ts"
import { apiKeysContract } from "../../contracts/apiKeysContract.ts"
import { auditContract } from "../../contracts/auditContract.ts"
import { bodiesContract } from "../../contracts/bodiesContract.ts"
import { circuitsContract } from "../../contracts/circuitsContract.ts"
import { configurationContract } from "../../contracts/configurationContract.ts"
import { endpointsContract } from "../../contracts/endpointsContract.ts"
import { eventStoreContract } from "../../contracts/eventStoreContract.ts"
import { httpTargetsContract } from "../../contracts/httpTargetsContract.ts"
import { journalsContract } from "../../contracts/journalsContract.ts"
import { messageViewsContract } from "../../contracts/messageViewsContract.ts"
import { orderContract } from "../../contracts/orderContract.ts"
import { projectionsContract } from "../../contracts/projectionsContract.ts"
import { providerMessagesContract } from "../../contracts/providerMessagesContract.ts"
import { queueContract } from "../../contracts/queueContract.ts"
import { receiptInboxContract } from "../../contracts/receiptInboxContract.ts"
import { replaysContract } from "../../contracts/replaysContract.ts"
import { retentionContract } from "../../contracts/retentionContract.ts"
import { whatsAppAccountsContract } from "../../contracts/whatsAppAccountsContract.ts"

eventStoreContract("memory", MemoryPorts.layer)
queueContract("memory", MemoryPorts.layer)
bodiesContract("memory", MemoryPorts.layer)
endpointsContract("memory", MemoryPorts.layer)
httpTargetsContract("memory", MemoryPorts.layer)
whatsAppAccountsContract("memory", MemoryPorts.layer)
apiKeysContract("memory", MemoryPorts.layer)
messageViewsContract("memory", MemoryPorts.layer)
projectionsContract("memory", MemoryPorts.layer)
journalsContract("memory", MemoryPorts.layer)
providerMessagesContract("memory", MemoryPorts.layer)
receiptInboxContract("memory", MemoryPorts.layer)
replaysContract("memory", MemoryPorts.layer)
retentionContract("memory", MemoryPorts.layer)
circuitsContract("memory", MemoryPorts.layer)
orderContract("memory", MemoryPorts.layer)
alertTargetsContract("memory", MemoryPorts.layer)
configurationContract("memory", MemoryPorts.layer)
auditContract("memory", MemoryPorts.layer)
