/**
 * Loaded into a Posthaste that is measured (`--import`): from one SIGUSR2 to the next it watches how late its event loop is, and then
 * prints that in milliseconds. How late the loop is, is what one org does to another within the process; the rest of what its neighbour
 * waits is the database's, and the machine's.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"

const RESOLUTION_MS = 2

let watching: ReturnType<typeof monitorEventLoopDelay> | null = null
process.on("SIGUSR2", () => {
  if (watching === null) {
    watching = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    watching.enable()
    return
  }
  watching.disable()
  // Each sample is the time between two looks.
  const [p50, p99, max] = [watching.percentile(50), watching.percentile(99), watching.max].map((nanos) =>
    Math.max(0, nanos / 1e6 - RESOLUTION_MS).toFixed(1)
  )
  console.log(`loop p50 ${p50} p99 ${p99} max ${max} ms late`)
  watching = null
})
