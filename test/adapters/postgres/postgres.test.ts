import { Effect, Layer, Redacted } from "effect"
import * as PostgresPorts from "../../../src/adapters/postgres/PostgresPorts.ts"
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
import { freshDatabase } from "../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))

const ports = Layer.unwrap(Effect.map(freshDatabase, (url) => PostgresPorts.layer({ url, encryptionKey })))

eventStoreContract("postgres", ports)
queueContract("postgres", ports)
bodiesContract("postgres", ports)
endpointsContract("postgres", ports)
httpTargetsContract("postgres", ports)
apiKeysContract("postgres", ports)
messageViewsContract("postgres", ports)
journalsContract("postgres", ports)
replaysContract("postgres", ports)
retentionContract("postgres", ports)
circuitsContract("postgres", ports)
