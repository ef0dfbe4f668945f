/** Database, keys and sample: from settings with DATABASE_URL, else created and kept in the data directory. */
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { Effect, type Redacted, Result, type Scope } from "effect"
import * as EmbeddedPostgres from "../adapters/embedded-postgres/EmbeddedPostgres.ts"
import type { OperatorKeys } from "../adapters/http/server/auth.ts"
import type { Settings } from "./config.ts"
import { dataFile, dataFileFailed, makeDataDirectory, readOrCreate } from "./dataFiles.ts"
import { type Sample, startReceiver } from "./sample.ts"
import { bearerKeys, encryptionKeyOf } from "./values.ts"

export interface DatabaseAndKeys {
  readonly url: Redacted.Redacted
  readonly operatorKeys: OperatorKeys
  readonly encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>>
  /** Null with DATABASE_URL. */
  readonly sample: Sample | null
}

export const readOrCreateDatabaseAndKeys = Effect.fnUntraced(function* (settings: Settings) {
  const { databaseUrl, operatorKeys, operatorKeyFile, encryptionKeys } = settings
  if (databaseUrl === null || operatorKeys === null || encryptionKeys === null)
    return yield* createDatabaseAndKeys(settings)
  const databaseAndKeys: DatabaseAndKeys = {
    url: databaseUrl,
    operatorKeys: yield* keptUpToDate(operatorKeys, operatorKeyFile),
    encryptionKeys,
    sample: null
  }
  return databaseAndKeys
})

const createDatabaseAndKeys = Effect.fnUntraced(function* (settings: Settings) {
  const dataDir = resolve(settings.dataDir)
  yield* makeDataDirectory(dataDir)
  // Created before the data: data without a key have lost theirs, and another would open nothing.
  const operatorKeys = yield* settings.operatorKeys === null
    ? readOrCreateOperatorKeys(dataDir)
    : keptUpToDate(settings.operatorKeys, settings.operatorKeyFile)
  const encryptionKeys = settings.encryptionKeys ?? [yield* readOrCreateEncryptionKey(dataDir)]
  const { url } = yield* EmbeddedPostgres.start({ directory: dataDir })
  const databaseAndKeys: DatabaseAndKeys = { url, encryptionKeys, operatorKeys, sample: yield* startReceiver(dataDir) }
  return databaseAndKeys
})

const OPERATOR_KEY_BYTES = 32
const makeOperatorKey = () => `ph_operator_${randomBytes(OPERATOR_KEY_BYTES).toString("base64url")}`

/** Nothing is sealed with it: a deleted file is replaced. Holds one key a line. */
const readOrCreateOperatorKeys = Effect.fnUntraced(function* (dataDir: string) {
  const file = dataFile(dataDir, "operator-key")
  const kept = yield* readOrCreate(file, makeOperatorKey, (text) => {
    const cut = text
      .split(/\s+/)
      .some((key) => key.startsWith("ph_operator_") && key.length !== makeOperatorKey().length)
    return cut ? "was cut off" : problemOf(bearerKeys(text))
  })
  return yield* keptUpToDate(Result.getOrThrow(bearerKeys(kept)), file.path)
})

const readOrCreateEncryptionKey = Effect.fnUntraced(function* (dataDir: string) {
  const file = dataFile(dataDir, "encryption-key")
  if ((yield* file.read) === null && EmbeddedPostgres.hasData(dataDir)) {
    return yield* dataFileFailed(
      `${file.path} is missing, and the secrets in the data beside it do not open without it: bring it back from a backup`
    )
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

const EVERY = "1 second"

/**
 * Reads a key file again when it changes: to rotate, add a line, change the callers, remove the old line. A file without
 * a key, or unreadable, changes nothing.
 */
export const keptUpToDate = Effect.fnUntraced(function* (
  first: ReadonlyArray<Redacted.Redacted>,
  file: string | null
): Effect.fn.Return<OperatorKeys, never, Scope.Scope> {
  let keys = first
  if (file === null) return () => keys
  let known: string | null = null
  const look = Effect.gen(function* () {
    const read = yield* Effect.result(Effect.tryPromise(() => readFile(file, "utf8")))
    const text = Result.getOrElse(read, () => "")
    if (text === known) return
    const isFirst = known === null
    known = text
    const found = bearerKeys(text)
    if (Result.isFailure(found) || found.success.length === 0) {
      yield* Effect.logWarning("the file of operator keys holds none that could be read, so the keys stay as they were")
      return
    }
    keys = found.success
    if (!isFirst)
      yield* Effect.logInfo("operator keys were read again").pipe(Effect.annotateLogs({ keys: keys.length }))
  })
  yield* look.pipe(Effect.delay(EVERY), Effect.forever, Effect.forkScoped)
  return () => keys
})
