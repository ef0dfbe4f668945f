/** Every port of the store over one set of connections. */
import { Layer, type Redacted } from "effect"
import * as Postgres from "./Postgres.ts"
import * as PostgresAlertProgress from "./PostgresAlertProgress.ts"
import * as PostgresAlertSubjects from "./PostgresAlertSubjects.ts"
import * as PostgresAlertTargets from "./PostgresAlertTargets.ts"
import * as PostgresApiKeys from "./PostgresApiKeys.ts"
import * as PostgresArchive from "./PostgresArchive.ts"
import * as PostgresAuditTrail from "./PostgresAuditTrail.ts"
import * as PostgresBelongings from "./PostgresBelongings.ts"
import * as PostgresBodies from "./PostgresBodies.ts"
import * as PostgresCircuits from "./PostgresCircuits.ts"
import * as PostgresDerived from "./PostgresDerived.ts"
import * as PostgresEndpoints from "./PostgresEndpoints.ts"
import * as PostgresEventStore from "./PostgresEventStore.ts"
import * as PostgresHttpTargets from "./PostgresHttpTargets.ts"
import * as PostgresJournals from "./PostgresJournals.ts"
import * as PostgresLedger from "./PostgresLedger.ts"
import * as PostgresMessageViews from "./PostgresMessageViews.ts"
import * as PostgresProjections from "./PostgresProjections.ts"
import * as PostgresProviderMessages from "./PostgresProviderMessages.ts"
import * as PostgresQueue from "./PostgresQueue.ts"
import * as PostgresReceiptInbox from "./PostgresReceiptInbox.ts"
import * as PostgresReplays from "./PostgresReplays.ts"
import * as PostgresRetention from "./PostgresRetention.ts"
import * as PostgresTimelines from "./PostgresTimelines.ts"
import * as PostgresWhatsAppAccounts from "./PostgresWhatsAppAccounts.ts"
import * as WorkSignal from "./WorkSignal.ts"
import * as WhereStreamsAre from "./whereStreamsAre.ts"

export interface Options extends Postgres.Options {
  /** 32 bytes; seals the secrets of endpoints, targets and accounts. */
  readonly encryptionKey: Redacted.Redacted<Uint8Array>
}

/** All that does not depend on where the streams of messages are. */
const beside = (options: Options) =>
  Layer.mergeAll(
    PostgresQueue.layer,
    PostgresJournals.layer,
    PostgresCircuits.layer,
    PostgresBodies.layer,
    PostgresEndpoints.layer(options.encryptionKey),
    PostgresHttpTargets.layer(options.encryptionKey),
    PostgresWhatsAppAccounts.layer(options.encryptionKey),
    PostgresApiKeys.layer,
    PostgresMessageViews.layer,
    PostgresAuditTrail.layer,
    PostgresTimelines.layer,
    PostgresProjections.layer,
    PostgresProviderMessages.layer,
    PostgresReceiptInbox.layer,
    PostgresReplays.layer,
    PostgresRetention.layer,
    PostgresAlertTargets.layer,
    PostgresAlertSubjects.layer,
    PostgresAlertProgress.layer
  )

const connected = (options: Postgres.Options) => Layer.provideMerge(WorkSignal.layer, Postgres.layer(options))

export const layer = (options: Options) =>
  Layer.mergeAll(beside(options), PostgresEventStore.layer, WhereStreamsAre.expect("here")).pipe(
    Layer.provide(connected(options))
  )

/** Where the streams live elsewhere: everything but the event store, and the ledger that one needs. */
export const withoutStreams = (options: Options) =>
  Layer.mergeAll(beside(options), PostgresLedger.layer, WhereStreamsAre.expect("elsewhere")).pipe(
    Layer.provide(connected(options))
  )

/** What reads, checks and moves the ground truth itself. It opens no secret, so it needs no key. */
const besideTruth = Layer.mergeAll(
  PostgresJournals.layer,
  PostgresCircuits.layer,
  PostgresBelongings.layer,
  PostgresDerived.layer,
  PostgresMessageViews.layer,
  PostgresAuditTrail.layer,
  PostgresTimelines.layer,
  PostgresProjections.layer
)

export const truth = (options: Postgres.Options) =>
  Layer.mergeAll(besideTruth, PostgresEventStore.layer, PostgresArchive.layer).pipe(Layer.provide(connected(options)))

/** The same where the streams live elsewhere. */
export const truthWithoutStreams = (options: Postgres.Options) =>
  Layer.mergeAll(besideTruth, PostgresLedger.layer).pipe(Layer.provide(connected(options)))
