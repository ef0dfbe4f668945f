/**
 * The database that Posthaste runs on, its keys and, on a first start without settings, a sample. With DATABASE_URL all
 * of them come from outside. Without it they are created here and kept in the data directory.
 */
import { randomBytes } from "node:crypto"
import { resolve } from "node:path"
import { Effect, Redacted } from "effect"
import * as EmbeddedPostgres from "../adapters/embedded-postgres/EmbeddedPostgres.ts"
import { encryptionKeyOf, type Settings } from "./config.ts"
import { DataFileFailed, dataFile, readOrCreate } from "./dataFiles.ts"
import { type Sample, startReceiver } from "./sample.ts"

export interface DatabaseAndKeys {
  readonly url: Redacted.Redacted
  readonly operatorKey: Redacted.Redacted
  readonly encryptionKey: Redacted.Redacted<Uint8Array>
  /** Null with DATABASE_URL: no sample is created there. */
  readonly sample: Sample | null
}

export const readOrCreateDatabaseAndKeys = (settings: Settings) => {
  const { databaseUrl, operatorKey, encryptionKey } = settings
  return databaseUrl !== null && operatorKey !== null && encryptionKey !== null
    ? Effect.succeed<DatabaseAndKeys>({ url: databaseUrl, operatorKey, encryptionKey, sample: null })
    : createDatabaseAndKeys(settings)
}

const createDatabaseAndKeys = Effect.fnUntraced(function* (settings: Settings) {
  const dataDir = resolve(settings.dataDir)
  const { url } = yield* EmbeddedPostgres.start({ directory: dataDir })
  // From here on this process alone holds the server, so no other process writes these files.
  const databaseAndKeys: DatabaseAndKeys = {
    url,
    operatorKey:
      settings.operatorKey ?? Redacted.make(yield* readOrCreate(dataFile(dataDir, "operator-key"), makeOperatorKey)),
    encryptionKey: settings.encryptionKey ?? (yield* readOrCreateEncryptionKey(dataDir)),
    sample: yield* startReceiver(dataDir)
  }
  return databaseAndKeys
})

const makeOperatorKey = () => `ph_operator_${randomBytes(32).toString("base64url")}`

const readOrCreateEncryptionKey = Effect.fnUntraced(function* (dataDir: string) {
  const name = "encryption-key"
  const text = yield* readOrCreate(dataFile(dataDir, name), () => randomBytes(32).toString("base64"))
  return yield* Effect.fromResult(encryptionKeyOf(text)).pipe(
    Effect.mapError((problem) => new DataFileFailed({ message: `${resolve(dataDir, name)} ${problem}` }))
  )
})
