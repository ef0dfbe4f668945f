import { Effect, Layer, Redacted } from "effect"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
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
import { freshDatabase } from "../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

const ports = Layer.unwrap(Effect.map(freshDatabase, (url) => PostgresPorts.layer({ url, encryptionKey })))

eventStoreContract("postgres", ports)
queueContract("postgres", ports)
bodiesContract("postgres", ports)
endpointsContract("postgres", ports)
httpTargetsContract("postgres", ports)
whatsAppAccountsContract("postgres", ports)
apiKeysContract("postgres", ports)
messageViewsContract("postgres", ports)
projectionsContract("postgres", ports)
journalsContract("postgres", ports)
providerMessagesContract("postgres", ports)
receiptInboxContract("postgres", ports)
replaysContract("postgres", ports)
retentionContract("postgres", ports)
circuitsContract("postgres", ports)
orderContract("postgres", ports)
alertTargetsContract("postgres", ports)
configurationContract("postgres", ports)
auditContract("postgres", ports)
