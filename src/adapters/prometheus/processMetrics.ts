/** Metrics of Node and the kernel, under their usual names. */
import { readdirSync, readFileSync } from "node:fs"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import type { Reading, Registry } from "./registry.ts"

/** Only the delay beyond it counts. */
const RESOLUTION_MS = 20

const one = (value: number): ReadonlyArray<Reading> => [[[], value]]

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
    return one((user + system) / 1e6)
  })
  registry.read(
    { name: "process_start_time_seconds", help: "When this process began, as a Unix time.", kind: "gauge" },
    () => one(startedAt)
  )
  registry.read({ name: "process_resident_memory_bytes", help: "Memory of this process.", kind: "gauge" }, () =>
    one(process.memoryUsage.rss())
  )
  registry.read(
    {
      name: "process_open_fds",
      help: "Open file descriptors; left out where the system does not tell.",
      kind: "gauge"
    },
    () => openFiles()
  )
  registry.read({ name: "process_max_fds", help: "How many file descriptors may be open.", kind: "gauge" }, () =>
    maxFiles()
  )
  registry.read({ name: "nodejs_heap_size_used_bytes", help: "JavaScript objects.", kind: "gauge" }, () =>
    one(getHeapStatistics().used_heap_size)
  )
  registry.read(
    { name: "nodejs_heap_size_limit_bytes", help: "Where JavaScript objects end the process.", kind: "gauge" },
    () => one(getHeapStatistics().heap_size_limit)
  )
  // Since the last scrape; the first gauge written takes the reading.
  let lags = { p50: 0, p99: 0, max: 0 }
  const lag = (name: string, help: string, now: () => number) =>
    registry.read({ name: `nodejs_eventloop_lag_${name}_seconds`, help, kind: "gauge" }, () => one(now()))
  lag("max", "The longest delay of the event loop since the last scrape.", () => {
    const at = (nanos: number) => (delay.count === 0 ? 0 : Math.max(0, nanos / 1e9 - RESOLUTION_MS / 1000))
    lags = { p50: at(delay.percentile(50)), p99: at(delay.percentile(99)), max: at(delay.max) }
    delay.reset()
    return lags.max
  })
  lag("p50", "The median delay of the event loop since the last scrape.", () => lags.p50)
  lag("p99", "The 99th percentile of the delays of the event loop since the last scrape.", () => lags.p99)
}

const openFiles = (): ReadonlyArray<Reading> => {
  try {
    return one(readdirSync("/proc/self/fd").length)
  } catch {
    return []
  }
}

const maxFiles = (): ReadonlyArray<Reading> => {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return limit === undefined ? [] : one(Number(limit))
  } catch {
    return []
  }
}
