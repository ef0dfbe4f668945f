/** Every port of the store over one set of connections. */
import { Effect, Layer } from "effect"
import * as PostgresAlertProgress from "./alerts/PostgresAlertProgress.ts"
import * as PostgresQueue from "./deliver/PostgresQueue.ts"
import * as PostgresQueueRepair from "./deliver/PostgresQueueRepair.ts"
import * as PostgresSetAside from "./deliver/PostgresSetAside.ts"
import * as EncryptionCheck from "./destinations/encryptionCheck.ts"
import * as PostgresBacklogs from "./destinations/PostgresBacklogs.ts"
import * as PostgresCircuits from "./destinations/PostgresCircuits.ts"
import * as PostgresDestinationHealth from "./destinations/PostgresDestinationHealth.ts"
import * as PostgresDestinations from "./destinations/PostgresDestinations.ts"
import { type Sealing, sealing } from "./destinations/sealing.ts"
import * as PostgresErasures from "./erasures/PostgresErasures.ts"
import * as PostgresEvents from "./events/PostgresEvents.ts"
import * as PostgresEventTypes from "./events/PostgresEventTypes.ts"
import * as PostgresApiKeys from "./keys/PostgresApiKeys.ts"
import * as PostgresAuditTrail from "./log/PostgresAuditTrail.ts"
import * as PostgresFactOutletProgress from "./log/PostgresFactOutletProgress.ts"
import * as PostgresParked from "./log/PostgresParked.ts"
import * as PostgresProjections from "./log/PostgresProjections.ts"
import * as PostgresBodies from "./messages/PostgresBodies.ts"
import * as PostgresMessageViews from "./messages/PostgresMessageViews.ts"
import * as PostgresOrgs from "./orgs/PostgresOrgs.ts"
import * as Postgres from "./Postgres.ts"
import * as PostgresClock from "./PostgresClock.ts"
import * as PostgresPulse from "./PostgresPulse.ts"
import * as PostgresProcesses from "./processes/PostgresProcesses.ts"
import * as PostgresProviderMessages from "./receipts/PostgresProviderMessages.ts"
import * as PostgresReceiptInbox from "./receipts/PostgresReceiptInbox.ts"
import * as PostgresReplays from "./replays/PostgresReplays.ts"
import * as PostgresCommandInbox from "./requests/PostgresCommandInbox.ts"
import * as PostgresRetention from "./retention/PostgresRetention.ts"
import * as SealedTexts from "./SealedTexts.ts"
import * as PostgresArchive from "./store/PostgresArchive.ts"
import * as PostgresDerivedRows from "./store/PostgresDerivedRows.ts"
import * as PostgresEventStore from "./store/PostgresEventStore.ts"
import * as PostgresJournals from "./store/PostgresJournals.ts"
import * as PostgresLedger from "./store/PostgresLedger.ts"
import * as PostgresMessageData from "./store/PostgresMessageData.ts"
import * as PostgresRestorations from "./store/PostgresRestorations.ts"
import * as PostgresStreamKeys from "./store/PostgresStreamKeys.ts"
import * as WhereStreamsAre from "./store/whereStreamsAre.ts"

export interface Options extends Postgres.Options, PostgresDestinations.Options {
  /** Whether bodies and answers are sealed from now on. */
  readonly sealsBodies?: boolean
  /** Whether facts that are stored elsewhere are sealed from now on. */
  readonly sealsFacts?: boolean
}

/** All that does not depend on where the streams of messages are. */
const beside = (options: Options) =>
  Layer.mergeAll(
    PostgresQueue.layer,
    PostgresSetAside.layer,
    PostgresQueueRepair.layer,
    PostgresJournals.layer,
    PostgresBacklogs.layer,
    PostgresCircuits.layer,
    PostgresBodies.layer,
    PostgresDestinations.layer(options),
    PostgresDestinationHealth.layer,
    PostgresEventTypes.layer,
    PostgresApiKeys.layer,
    PostgresMessageViews.layer,
    PostgresAuditTrail.layer,
    PostgresProjections.layer,
    PostgresParked.layer,
    PostgresProviderMessages.layer,
    PostgresReceiptInbox.layer,
    PostgresReplays.layer,
    PostgresRetention.layer,
    PostgresAlertProgress.layer,
    PostgresOrgs.layer,
    PostgresProcesses.layer,
    PostgresCommandInbox.layer,
    PostgresRestorations.layer,
    PostgresFactOutletProgress.layer,
    PostgresClock.layer,
    EncryptionCheck.layer(options.encryptionKey, options.olderKeys)
  )

const connected = (options: Postgres.Options) => Layer.provideMerge(PostgresPulse.layer, Postgres.layer(options))

const connectedWithKeys = ({ encryptionKey, olderKeys, sealsBodies = false, ...options }: Options, makesKeys = false) =>
  Layer.provideMerge(
    SealedTexts.layer(Effect.succeed(sealing(encryptionKey, olderKeys)), sealsBodies, makesKeys),
    connected(options)
  )

export const layer = (options: Options) =>
  Layer.mergeAll(
    beside(options),
    PostgresErasures.layer({ streams: "here" }),
    PostgresEventStore.layer,
    PostgresArchive.layer,
    PostgresEvents.layer,
    WhereStreamsAre.expect("here")
  ).pipe(Layer.provide(connectedWithKeys(options)))

/** Where the streams live elsewhere: everything but the event store, and the ledger that one needs. */
export const withoutStreams = (options: Options) =>
  Layer.mergeAll(
    beside(options),
    PostgresErasures.layer({ streams: options.sealsFacts === true ? "sealed" : "clear" }),
    PostgresLedger.layer,
    PostgresStreamKeys.layer,
    PostgresEvents.layer,
    WhereStreamsAre.expect("elsewhere")
  ).pipe(Layer.provide(connectedWithKeys(options, options.sealsFacts)))

/** What reads, checks and moves the ground truth itself. It opens no secret of a destination. */
const besideTruth = Layer.mergeAll(
  PostgresSetAside.layer,
  PostgresQueueRepair.layer,
  PostgresJournals.layer,
  PostgresCircuits.layer,
  PostgresMessageData.layer,
  PostgresDerivedRows.layer,
  PostgresMessageViews.layer,
  PostgresDestinationHealth.layer,
  PostgresParked.layer,
  PostgresProjections.layer
)

/** `sealing`: for texts that are stored sealed, or are to be. It is asked for when there is one. */
export interface TruthOptions extends Postgres.Options {
  readonly sealing?: Effect.Effect<Sealing | null, unknown>
  readonly sealsBodies?: boolean
  readonly sealsFacts?: boolean
}

const connectedToTruth = (
  { sealing = Effect.succeed(null), sealsBodies = false, ...options }: TruthOptions,
  makesKeys = false
) => Layer.provideMerge(SealedTexts.layer(sealing, sealsBodies, makesKeys), connected(options))

export const truth = (options: TruthOptions) =>
  Layer.mergeAll(besideTruth, PostgresEventStore.layer, PostgresArchive.layer).pipe(
    Layer.provide(connectedToTruth(options))
  )

/** The same where the streams live elsewhere. */
export const truthWithoutStreams = (options: TruthOptions) =>
  Layer.mergeAll(besideTruth, PostgresLedger.layer, PostgresStreamKeys.layer).pipe(
    Layer.provide(connectedToTruth(options, options.sealsFacts))
  )
