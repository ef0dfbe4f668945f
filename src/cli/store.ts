/**
 * The store, without a service in between: the database that DATABASE_URL names or the one in the data directory, and
 * EventStoreDB for the streams where EVENTSTORE_URL is set. A running Posthaste may use the same store meanwhile.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect, Layer, Result } from "effect"
import { LogReader } from "../application/log/LogReader.ts"
import { encryptionKeys, storeSettings } from "../setup/config.ts"
import { dataFile } from "../setup/dataFiles.ts"
import { encryptionKeyOf } from "../setup/values.ts"
import { failed } from "./terminal.ts"

// Loaded on demand: these take longer to load than most commands to run.
const embedded = Effect.promise(() => import("../adapters/embedded-postgres/EmbeddedPostgres.ts"))
const postgresPorts = Effect.promise(() => import("../setup/postgresPorts.ts"))
const channels = Effect.promise(() => import("../setup/channels.ts"))
const eventStoreDb = Effect.promise(() => import("../adapters/eventstoredb/EventStoreDb.ts"))

/** Shares a server that runs on the data directory, or runs one while the scope is open. */
export const databaseUrl = Effect.gen(function* () {
  const { databaseUrl, dataDir } = yield* storeSettings
  if (databaseUrl !== null) return databaseUrl
  const { running, start } = yield* embedded
  const shared = running(dataDir)
  if (shared !== null) return shared
  if (!existsSync(resolve(dataDir, "postgres"))) {
    const message = `there is no store: DATABASE_URL is not set, and there is no database in ${resolve(dataDir)}`
    return yield* failed(message)
  }
  return (yield* start({ directory: resolve(dataDir) })).url
})

/** From the environment or the data directory; the newest first, null for none. */
export const keys = Effect.gen(function* () {
  const given = yield* encryptionKeys
  if (given !== null) return given
  const { dataDir } = yield* storeSettings
  const kept = yield* dataFile(resolve(dataDir), "encryption-key").read
  const key = kept === null ? null : encryptionKeyOf(kept)
  return key === null || Result.isFailure(key) ? null : [key.success]
})

/** `asItIs`: refuses a database that lacks migrations, and stores nothing. */
export const storeLayer = (asItIs: boolean) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { eventStoreUrl, schema } = yield* storeSettings
      const url = yield* databaseUrl
      const PostgresPorts = yield* postgresPorts
      const beside = Layer.merge(LogReader.layer, (yield* channels).unused)
      const postgres = { url, schema, asItIs }
      if (eventStoreUrl === null) return Layer.provideMerge(beside, PostgresPorts.truth(postgres))
      const streams = (yield* eventStoreDb).layer(eventStoreUrl, "fail")
      return Layer.provideMerge(beside, PostgresPorts.truthOverStreams(postgres).pipe(Layer.provide(streams)))
    })
  )
