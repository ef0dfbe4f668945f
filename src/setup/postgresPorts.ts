/** Every port of the store over one set of connections. */
import { Context, Effect, Layer, Schema } from "effect"
import * as PostgresQueue from "../adapters/postgres/deliver/PostgresQueue.ts"
import * as EncryptionCheck from "../adapters/postgres/destinations/encryptionCheck.ts"
import * as PostgresBacklogs from "../adapters/postgres/destinations/PostgresBacklogs.ts"
import * as PostgresCircuits from "../adapters/postgres/destinations/PostgresCircuits.ts"
import * as PostgresDestinationHealth from "../adapters/postgres/destinations/PostgresDestinationHealth.ts"
import * as PostgresDestinations from "../adapters/postgres/destinations/PostgresDestinations.ts"
import * as PostgresErasures from "../adapters/postgres/erasures/PostgresErasures.ts"
import * as PostgresEvents from "../adapters/postgres/events/PostgresEvents.ts"
import * as PostgresEventTypes from "../adapters/postgres/events/PostgresEventTypes.ts"
import * as PostgresApiKeys from "../adapters/postgres/keys/PostgresApiKeys.ts"
import * as PostgresAuditTrail from "../adapters/postgres/log/PostgresAuditTrail.ts"
import * as PostgresFollowers from "../adapters/postgres/log/PostgresFollowers.ts"
import * as PostgresParked from "../adapters/postgres/log/PostgresParked.ts"
import * as PostgresProjections from "../adapters/postgres/log/PostgresProjections.ts"
import * as PostgresBodies from "../adapters/postgres/messages/PostgresBodies.ts"
import * as PostgresMessageViews from "../adapters/postgres/messages/PostgresMessageViews.ts"
import * as PostgresOrgs from "../adapters/postgres/orgs/PostgresOrgs.ts"
import * as Postgres from "../adapters/postgres/Postgres.ts"
import * as PostgresClock from "../adapters/postgres/PostgresClock.ts"
import * as PostgresPulse from "../adapters/postgres/PostgresPulse.ts"
import * as PostgresProcesses from "../adapters/postgres/processes/PostgresProcesses.ts"
import * as PostgresProviderMessages from "../adapters/postgres/receipts/PostgresProviderMessages.ts"
import * as PostgresReceiptInbox from "../adapters/postgres/receipts/PostgresReceiptInbox.ts"
import * as PostgresReplays from "../adapters/postgres/replays/PostgresReplays.ts"
import * as PostgresCommandInbox from "../adapters/postgres/requests/PostgresCommandInbox.ts"
import * as PostgresRetention from "../adapters/postgres/retention/PostgresRetention.ts"
import * as PostgresArchive from "../adapters/postgres/store/PostgresArchive.ts"
import * as PostgresDerivedRows from "../adapters/postgres/store/PostgresDerivedRows.ts"
import * as PostgresEventStore from "../adapters/postgres/store/PostgresEventStore.ts"
import * as PostgresJournals from "../adapters/postgres/store/PostgresJournals.ts"
import * as PostgresMessageData from "../adapters/postgres/store/PostgresMessageData.ts"
import { overStreams } from "../adapters/postgres/streams/EventStoreOverStreams.ts"
import { followStreams } from "../adapters/postgres/streams/followStreams.ts"
import { EventStore } from "../application/ports/EventStore.ts"
import { Events } from "../application/ports/Events.ts"

export type Options = Postgres.Options & PostgresDestinations.Options

class StreamsElsewhere extends Schema.TaggedError<StreamsElsewhere>()("StreamsElsewhere", {
  message: Schema.String
}) {}

const hereStatement = Postgres.unprepared`select from stream_follower`
const beginStatement = Postgres.unprepared`insert into stream_follower (one)
    select true where not exists (select from event where stream is null) on conflict do nothing`
const elsewhereStatement = Postgres.unprepared`select where not exists (select from stream_follower)`

/** Refuses a start that expects the streams of messages elsewhere than they are: it would take every message for unknown. */
const expectStreams = (where: "here" | "elsewhere") =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { durable } = yield* Postgres.Postgres
      if (where === "elsewhere") yield* Postgres.unavailable(durable.rows(beginStatement, []))
      const found = yield* Postgres.unavailable(durable.rows(where === "here" ? hereStatement : elsewhereStatement, []))
      if (found.length === 0) return
      return yield* new StreamsElsewhere({
        message:
          where === "here"
            ? "the messages of this database have their streams in EventStoreDB: set EVENTSTORE_URL"
            : "the messages of this database have their streams in it, not in EventStoreDB: unset EVENTSTORE_URL"
      })
    })
  )

const beside = (options: Options) =>
  Layer.mergeAll(
    PostgresQueue.layer,
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
    PostgresDerivedRows.layer,
    PostgresProviderMessages.layer,
    PostgresReceiptInbox.layer,
    PostgresErasures.layer,
    PostgresReplays.layer,
    PostgresRetention.layer,
    PostgresOrgs.layer,
    PostgresProcesses.layer,
    PostgresCommandInbox.layer,
    PostgresFollowers.layer,
    PostgresClock.layer,
    EncryptionCheck.layer(options.encryptionKey, options.olderKeys)
  )

const connected = (options: Postgres.Options) => Layer.provideMerge(PostgresPulse.layer, Postgres.layer(options))

export const layer = (options: Options) =>
  Layer.mergeAll(
    beside(options),
    PostgresEventStore.layer,
    PostgresArchive.layer,
    PostgresEvents.layer,
    expectStreams("here")
  ).pipe(Layer.provide(connected(options)))

const storesOverStreams = (follows: boolean) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { store, publish, catchUp, complete } = yield* overStreams(yield* EventStore)
      if (follows) yield* Effect.forkScoped(followStreams({ catchUp, complete }))
      return Context.make(EventStore, store).pipe(Context.add(Events, { ...(yield* Events), publish }))
    })
  ).pipe(Layer.provide([PostgresEventStore.layer, PostgresEvents.layer, PostgresParked.layer]))

export const layerOverStreams = (options: Options) =>
  Layer.mergeAll(beside(options), storesOverStreams(true), PostgresArchive.layer).pipe(
    Layer.provide(expectStreams("elsewhere")),
    Layer.provide(connected(options))
  )

/** Ports of the store tools, which open no secret of a destination. */
const besideTruth = Layer.mergeAll(
  PostgresJournals.layer,
  PostgresCircuits.layer,
  PostgresMessageData.layer,
  PostgresDerivedRows.layer,
  PostgresMessageViews.layer,
  PostgresDestinationHealth.layer,
  PostgresParked.layer,
  PostgresProjections.layer
)

export const truth = (options: Postgres.Options) =>
  Layer.mergeAll(besideTruth, PostgresEventStore.layer, PostgresArchive.layer).pipe(Layer.provide(connected(options)))

/** Follows nothing. */
export const truthOverStreams = (options: Postgres.Options) =>
  Layer.mergeAll(besideTruth, storesOverStreams(false), PostgresArchive.layerOverStreams).pipe(
    Layer.provide(expectStreams("elsewhere")),
    Layer.provide(connected(options))
  )
