/** Metrics of Node and the kernel, under their usual names. */
import { readdirSync, readFileSync } from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import type { Registry } from "./registry.ts"

/** Only the delay beyond it counts. */
const RESOLUTION_MS = 20

export const watchProcess = (registry: Registry, roles: ReadonlyArray<string>, version: string): void => {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const startedAt = Date.now() / 1000 - process.uptime()

  registry.read(
    { name: "posthaste_role", help: "1 for each role of this process.", labels: ["role"], kind: "gauge" },
    () => roles.map((role) => [[role], 1] as const)
  )
  registry.read(
    { name: "posthaste_build_info", help: "The release that runs.", labels: ["version", "node"], kind: "gauge" },
    () => [[[version, process.version], 1]]
  )
  registry.read({ name: "process_cpu_seconds_total", help: "CPU time of this process.", kind: "counter" }, () => {
    const { user, system } = process.cpuUsage()
    return [[[], (user + system) / 1e6]]
  })
  const gauge = (name: string, help: string, now: () => number | null) =>
    registry.read({ name, help, kind: "gauge" }, () => {
      const value = now()
      return value === null ? [] : [[[], value]]
    })
  gauge("process_start_time_seconds", "When this process began, as a Unix time.", () => startedAt)
  gauge("process_resident_memory_bytes", "Memory of this process.", () => process.memoryUsage.rss())
  gauge("process_open_fds", "Open file descriptors; left out where the system does not tell.", openFiles)
  gauge("process_max_fds", "How many file descriptors may be open.", maxFiles)
  gauge("nodejs_heap_size_used_bytes", "JavaScript objects.", () => getHeapStatistics().used_heap_size)
  gauge(
    "nodejs_heap_size_limit_bytes",
    "Where JavaScript objects end the process.",
    () => getHeapStatistics().heap_size_limit
  )
  // Since the last scrape; the first gauge written takes the reading.
  let lags = { p50: 0, p99: 0, max: 0 }
  gauge("nodejs_eventloop_lag_max_seconds", "The longest delay of the event loop since the last scrape.", () => {
    const at = (nanos: number) => (delay.count === 0 ? 0 : Math.max(0, nanos / 1e9 - RESOLUTION_MS / 1000))
    lags = { p50: at(delay.percentile(50)), p99: at(delay.percentile(99)), max: at(delay.max) }
    delay.reset()
    return lags.max
  })
  gauge("nodejs_eventloop_lag_p50_seconds", "The median delay of the event loop since the last scrape.", () => lags.p50)
  gauge(
    "nodejs_eventloop_lag_p99_seconds",
    "The 99th percentile of the delays of the event loop since the last scrape.",
    () => lags.p99
  )
}

const openFiles = (): number | null => {
  try {
    return readdirSync("/proc/self/fd").length
  } catch {
    return null
  }
}

const maxFiles = (): number | null => {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return limit === undefined ? null : Number(limit)
  } catch {
    return null
  }
}
