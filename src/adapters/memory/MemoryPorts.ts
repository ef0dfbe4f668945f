/**
 * Every port of the store over one `Memory`. Several of these on one `Memory` are several processes on one
 * database; `layer` is the usual case, one process with an empty store of its own.
 */
import { Layer } from "effect"
import * as Memory from "./Memory.ts"
import * as MemoryApiKeys from "./MemoryApiKeys.ts"
import * as MemoryBodies from "./MemoryBodies.ts"
import * as MemoryCircuits from "./MemoryCircuits.ts"
import * as MemoryEndpoints from "./MemoryEndpoints.ts"
import * as MemoryEventStore from "./MemoryEventStore.ts"
import * as MemoryHttpTargets from "./MemoryHttpTargets.ts"
import * as MemoryJournals from "./MemoryJournals.ts"
import * as MemoryMessageViews from "./MemoryMessageViews.ts"
import * as MemoryQueue from "./MemoryQueue.ts"
import * as MemoryReplays from "./MemoryReplays.ts"
import * as MemoryRetention from "./MemoryRetention.ts"

export const layerShared = Layer.mergeAll(
  MemoryEventStore.layer,
  MemoryQueue.layer,
  MemoryJournals.layer,
  MemoryCircuits.layer,
  MemoryBodies.layer,
  MemoryEndpoints.layer,
  MemoryHttpTargets.layer,
  MemoryApiKeys.layer,
  MemoryMessageViews.layer,
  MemoryReplays.layer,
  MemoryRetention.layer
)

export const layer = layerShared.pipe(Layer.provide(Memory.layer))
