/** All metrics of a process and their text. docs/metrics.md lists the names. */
import type { PoolCount } from "../../application/ports/Processes.ts"
import type { Rejection, Watcher } from "../../application/ports/Telemetry.ts"
import { keptTraceOf } from "../../application/traceparent.ts"
import { timedStores, watchDeliveries } from "./deliveryMetrics.ts"
import { watchInstallation } from "./installationMetrics.ts"
import { watchProcess } from "./processMetrics.ts"
import { contentTypes, makeRegistry, observe, type Registry } from "./registry.ts"

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

const bounds = [0.005, 0.025, 0.1, 0.5, 2.5]

/** Routes that accept messages, and reasons to refuse one unread. */
const isIntake = (route: string) => /^POST \/api\/v1\/outbound\/messages(\/batch)?$/.test(route)
const reasons: Readonly<Record<number, Rejection>> = {
  401: "unauthorized",
  413: "too_large",
  415: "unsupported_media_type",
  429: "too_many",
  503: "unavailable"
}

export const watchHttp = (registry: Registry, { rejected }: Pick<Watcher, "rejected">) => {
  const requests = registry.counter({
    name: "posthaste_http_requests_total",
    help: "Answers of the API.",
    labels: ["route", "status"],
    seriesMax: 600
  })
  const durations = registry.histogram({
    name: "posthaste_http_request_duration_seconds",
    help: "How long the API took to answer; of an endless answer, to begin it.",
    labels: ["route"],
    bounds,
    seriesMax: 120
  })
  return (matched: string | null, status: number, seconds: number): void => {
    const route = matched ?? "none"
    requests(route, String(status)).value++
    observe(durations(route), bounds, seconds)
    const reason = isIntake(route) ? reasons[status] : undefined
    if (reason !== undefined) rejected("http", reason)
  }
}
