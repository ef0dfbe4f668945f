/**
 * The database that Posthaste runs on, its keys and, on a first start without settings, a sample. With DATABASE_URL all
 * of them come from outside. Without it they are created here and kept in the data directory.
 */
import { randomBytes } from "node:crypto"
import { resolve } from "node:path"
import { Effect, Redacted, Result } from "effect"
import * as EmbeddedPostgres from "../adapters/embedded-postgres/EmbeddedPostgres.ts"
import { bearerKey, encryptionKeyOf, type Settings } from "./config.ts"
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
  // Before the data: so data without a key beside them have lost it, and a new one would open nothing of them.
  const operatorKey = settings.operatorKey ?? (yield* readOrCreateOperatorKey(dataDir))
  const encryptionKey = settings.encryptionKey ?? (yield* readOrCreateEncryptionKey(dataDir))
  const { url } = yield* EmbeddedPostgres.start({ directory: dataDir })
  const databaseAndKeys: DatabaseAndKeys = {
    url,
    encryptionKey,
    operatorKey,
    sample: yield* startReceiver(dataDir)
  }
  return databaseAndKeys
})

const OPERATOR_KEY_BYTES = 32
const makeOperatorKey = () => `ph_operator_${randomBytes(OPERATOR_KEY_BYTES).toString("base64url")}`

/** Whoever has lost it can delete the file to get another: nothing is sealed with it. */
const readOrCreateOperatorKey = (dataDir: string) =>
  Effect.map(
    readOrCreate(dataFile(dataDir, "operator-key"), makeOperatorKey, (kept) =>
      kept.startsWith("ph_operator_")
        ? kept.length === makeOperatorKey().length
          ? null
          : "was cut off"
        : problemOf(bearerKey(kept))
    ),
    Redacted.make<string>
  )

const readOrCreateEncryptionKey = Effect.fnUntraced(function* (dataDir: string) {
  const file = dataFile(dataDir, "encryption-key")
  if ((yield* file.read) === null && EmbeddedPostgres.hasData(dataDir)) {
    return yield* new DataFileFailed({
      message: `${file.path} is missing, and the secrets in the data beside it do not open without it: bring it back from a backup`
    })
  }
  const kept = yield* readOrCreate(
    file,
    () => randomBytes(32).toString("base64"),
    (text) => problemOf(encryptionKeyOf(text))
  )
  return Result.getOrThrow(encryptionKeyOf(kept))
})

const problemOf = <A>(read: Result.Result<A, string>): string | null =>
  Result.match(read, { onSuccess: () => null, onFailure: (problem) => problem })
