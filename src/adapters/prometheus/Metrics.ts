/** All metrics of a process and their text. docs/metrics.md lists the names. */

import type { PoolCount } from "../../application/ports/Processes.ts"
import { keptTraceOf } from "../../application/traceparent.ts"
import { timedStores, watchDeliveries } from "./deliveryMetrics.ts"
import { watchHttp } from "./httpMetrics.ts"
import { watchInstallation } from "./installationMetrics.ts"
import { watchProcess } from "./processMetrics.ts"
import { contentTypes, makeRegistry } from "./registry.ts"

/** `destinations` may be labels. */
export const make = (destinations: ReadonlyArray<string>) => {
  const registry = makeRegistry()
  const watcher = watchDeliveries(registry, new Set(destinations), keptTraceOf)
  return {
    watcher,
    answered: watchHttp(registry, watcher),
    timedStores: timedStores(registry),
    /** Answers the receiver of new readings of the installation. */
    watch: (
      roles: ReadonlyArray<string>,
      version: string,
      channels: ReadonlyArray<string>,
      connections: () => ReadonlyArray<PoolCount>
    ) => {
      watcher.begin(channels)
      watchProcess(registry, roles, version)
      return watchInstallation(registry, channels, connections)
    },
    text: (accept: string | undefined) => {
      const openMetrics = accept?.includes("application/openmetrics-text") === true
      return {
        text: registry.text(openMetrics),
        contentType: openMetrics ? contentTypes.openMetrics : contentTypes.plain
      }
    }
  }
}
