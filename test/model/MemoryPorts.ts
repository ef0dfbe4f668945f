/**
 * Every port of the store over one `Memory`, and the channels there are. Several of these on one `Memory` are several processes on one
 * database; `layer` is the usual case, one process with an empty store of its own.
 */
import { Layer } from "effect"
import { OwnClock } from "../../src/application/ports/OwnClock.ts"
import * as Channels from "../../src/setup/channels.ts"
import * as MemoryQueue from "./deliver/MemoryQueue.ts"
import * as MemoryBacklogs from "./destinations/MemoryBacklogs.ts"
import * as MemoryCircuits from "./destinations/MemoryCircuits.ts"
import * as MemoryDestinationHealth from "./destinations/MemoryDestinationHealth.ts"
import * as MemoryDestinations from "./destinations/MemoryDestinations.ts"
import * as MemoryErasures from "./erasures/MemoryErasures.ts"
import * as MemoryEvents from "./events/MemoryEvents.ts"
import * as MemoryEventTypes from "./events/MemoryEventTypes.ts"
import * as MemoryApiKeys from "./keys/MemoryApiKeys.ts"
import * as MemoryAuditTrail from "./log/MemoryAuditTrail.ts"
import * as MemoryFollowers from "./log/MemoryFollowers.ts"
import * as MemoryParked from "./log/MemoryParked.ts"
import * as MemoryProjections from "./log/MemoryProjections.ts"
import * as Memory from "./Memory.ts"
import * as MemoryBodies from "./messages/MemoryBodies.ts"
import * as MemoryMessageViews from "./messages/MemoryMessageViews.ts"
import * as MemoryOrgs from "./orgs/MemoryOrgs.ts"
import * as MemoryProcesses from "./processes/MemoryProcesses.ts"
import * as MemoryProviderMessages from "./receipts/MemoryProviderMessages.ts"
import * as MemoryReceiptInbox from "./receipts/MemoryReceiptInbox.ts"
import * as MemoryReplays from "./replays/MemoryReplays.ts"
import * as MemoryCommandInbox from "./requests/MemoryCommandInbox.ts"
import * as MemoryRetention from "./retention/MemoryRetention.ts"
import * as MemoryArchive from "./store/MemoryArchive.ts"
import * as MemoryDerived from "./store/MemoryDerivedRows.ts"
import * as MemoryEventStore from "./store/MemoryEventStore.ts"
import * as MemoryJournals from "./store/MemoryJournals.ts"
import * as MemoryBelongings from "./store/MemoryMessageData.ts"

export const layerShared = Layer.mergeAll(
  Channels.unused,
  MemoryEventStore.layer,
  MemoryQueue.layer,
  MemoryJournals.layer,
  MemoryBacklogs.layer,
  MemoryErasures.layer,
  MemoryEvents.layer,
  MemoryEventTypes.layer,
  MemoryCircuits.layer,
  MemoryBodies.layer,
  MemoryDestinations.layer,
  MemoryDestinationHealth.layer,
  MemoryApiKeys.layer,
  MemoryMessageViews.layer,
  MemoryAuditTrail.layer,
  MemoryProjections.layer,
  MemoryParked.layer,
  MemoryProviderMessages.layer,
  MemoryReceiptInbox.layer,
  MemoryReplays.layer,
  MemoryRetention.layer,
  MemoryArchive.layer,
  MemoryBelongings.layer,
  MemoryDerived.layer,
  MemoryOrgs.layer,
  MemoryProcesses.layer,
  MemoryFollowers.layer,
  MemoryCommandInbox.layer,
  Layer.succeed(OwnClock, { offsetMs: () => 0 })
)

export const layer = layerShared.pipe(Layer.provide(Memory.layer))
