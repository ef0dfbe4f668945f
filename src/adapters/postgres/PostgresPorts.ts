/** Every port of the store over one set of connections. */
import { Layer, type Redacted } from "effect"
import * as Postgres from "./Postgres.ts"
import * as PostgresApiKeys from "./PostgresApiKeys.ts"
import * as PostgresBodies from "./PostgresBodies.ts"
import * as PostgresCircuits from "./PostgresCircuits.ts"
import * as PostgresEndpoints from "./PostgresEndpoints.ts"
import * as PostgresEventStore from "./PostgresEventStore.ts"
import * as PostgresHttpTargets from "./PostgresHttpTargets.ts"
import * as PostgresJournals from "./PostgresJournals.ts"
import * as PostgresMessageViews from "./PostgresMessageViews.ts"
import * as PostgresQueue from "./PostgresQueue.ts"
import * as PostgresReplays from "./PostgresReplays.ts"
import * as PostgresRetention from "./PostgresRetention.ts"
import * as WorkSignal from "./WorkSignal.ts"

export interface Options extends Postgres.Options {
  /** 32 bytes; seals the secrets of endpoints and targets. */
  readonly encryptionKey: Redacted.Redacted<Uint8Array>
}

export const layer = (options: Options) =>
  Layer.mergeAll(
    PostgresEventStore.layer,
    PostgresQueue.layer,
    PostgresJournals.layer,
    PostgresCircuits.layer,
    PostgresBodies.layer,
    PostgresEndpoints.layer(options.encryptionKey),
    PostgresHttpTargets.layer(options.encryptionKey),
    PostgresApiKeys.layer,
    PostgresMessageViews.layer,
    PostgresReplays.layer,
    PostgresRetention.layer
  ).pipe(Layer.provide(WorkSignal.layer), Layer.provide(Postgres.layer(options)))
