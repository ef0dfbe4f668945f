/**
 * Every port of the store over one `Memory`. Several of these on one `Memory` are several processes on one
 * database; `layer` is the usual case, one process with an empty store of its own.
 */
import { Layer } from "effect"
import * as Memory from "./Memory.ts"
import * as MemoryAlertProgress from "./MemoryAlertProgress.ts"
import * as MemoryAlertSubjects from "./MemoryAlertSubjects.ts"
import * as MemoryAlertTargets from "./MemoryAlertTargets.ts"
import * as MemoryApiKeys from "./MemoryApiKeys.ts"
import * as MemoryArchive from "./MemoryArchive.ts"
import * as MemoryAuditTrail from "./MemoryAuditTrail.ts"
import * as MemoryBelongings from "./MemoryBelongings.ts"
import * as MemoryBodies from "./MemoryBodies.ts"
import * as MemoryCircuits from "./MemoryCircuits.ts"
import * as MemoryDerived from "./MemoryDerived.ts"
import * as MemoryEndpoints from "./MemoryEndpoints.ts"
import * as MemoryEventStore from "./MemoryEventStore.ts"
import * as MemoryHttpTargets from "./MemoryHttpTargets.ts"
import * as MemoryJournals from "./MemoryJournals.ts"
import * as MemoryMessageViews from "./MemoryMessageViews.ts"
import * as MemoryProjections from "./MemoryProjections.ts"
import * as MemoryProviderMessages from "./MemoryProviderMessages.ts"
import * as MemoryQueue from "./MemoryQueue.ts"
import * as MemoryReceiptInbox from "./MemoryReceiptInbox.ts"
import * as MemoryReplays from "./MemoryReplays.ts"
import * as MemoryRetention from "./MemoryRetention.ts"
import * as MemoryTimelines from "./MemoryTimelines.ts"
import * as MemoryWhatsAppAccounts from "./MemoryWhatsAppAccounts.ts"

export const layerShared = Layer.mergeAll(
  MemoryEventStore.layer,
  MemoryQueue.layer,
  MemoryJournals.layer,
  MemoryCircuits.layer,
  MemoryBodies.layer,
  MemoryEndpoints.layer,
  MemoryHttpTargets.layer,
  MemoryWhatsAppAccounts.layer,
  MemoryApiKeys.layer,
  MemoryMessageViews.layer,
  MemoryAuditTrail.layer,
  MemoryTimelines.layer,
  MemoryProjections.layer,
  MemoryProviderMessages.layer,
  MemoryReceiptInbox.layer,
  MemoryReplays.layer,
  MemoryRetention.layer,
  MemoryArchive.layer,
  MemoryBelongings.layer,
  MemoryDerived.layer,
  MemoryAlertTargets.layer,
  MemoryAlertSubjects.layer,
  MemoryAlertProgress.layer
)

export const layer = layerShared.pipe(Layer.provide(Memory.layer))
