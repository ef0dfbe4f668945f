import * as MemoryPorts from "../../../src/adapters/memory/MemoryPorts.ts"
import { apiKeysContract } from "../../contracts/apiKeysContract.ts"
import { bodiesContract } from "../../contracts/bodiesContract.ts"
import { circuitsContract } from "../../contracts/circuitsContract.ts"
import { endpointsContract } from "../../contracts/endpointsContract.ts"
import { eventStoreContract } from "../../contracts/eventStoreContract.ts"
import { httpTargetsContract } from "../../contracts/httpTargetsContract.ts"
import { journalsContract } from "../../contracts/journalsContract.ts"
import { messageViewsContract } from "../../contracts/messageViewsContract.ts"
import { queueContract } from "../../contracts/queueContract.ts"
import { replaysContract } from "../../contracts/replaysContract.ts"
import { retentionContract } from "../../contracts/retentionContract.ts"

eventStoreContract("memory", MemoryPorts.layer)
queueContract("memory", MemoryPorts.layer)
bodiesContract("memory", MemoryPorts.layer)
endpointsContract("memory", MemoryPorts.layer)
httpTargetsContract("memory", MemoryPorts.layer)
apiKeysContract("memory", MemoryPorts.layer)
messageViewsContract("memory", MemoryPorts.layer)
journalsContract("memory", MemoryPorts.layer)
replaysContract("memory", MemoryPorts.layer)
retentionContract("memory", MemoryPorts.layer)
circuitsContract("memory", MemoryPorts.layer)
