/**
 * `npx node bench/strangers.ts`: what strangers without a key do to somebody with one. Alone first, then beside slow readers, slow
 * writers, 3,000 connections and 50,000 wrong keys, an org sends 50 messages a second from another address. Prints how long its
 * messages took to be accepted, how many failed, and the memory of the process. The strangers have a thread of their own, so that
 * what is measured is not how busy they keep each other.
 */

import { once } from "node:events"
import { readFileSync, rmSync } from "node:fs"
import { Agent } from "node:http"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { leaveNothingBehind, temporaryDirectory } from "../test/servers/leftovers.ts"
import { startPosthaste, stop } from "../test/servers/posthaste.ts"
import { scriptFlags } from "../test/servers/scriptFlags.ts"
import { asked } from "./asked.ts"
import { harms } from "./harms.ts"

scriptFlags({})
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 10)
const PER_SECOND = 50

leaveNothingBehind()
const home = temporaryDirectory()
const posthaste = await startPosthaste({ POSTHASTE_DATA_DIR: home, POSTHASTE_LOG_LEVEL: "error" })
const { hostname, port } = new URL(posthaste.url)
const at = { hostname, port }
const [key, endpoint] = ["default-org-key", "sample-endpoint-id"].map((name) =>
  readFileSync(join(home, name), "utf8").trim()
)

interface Figures {
  readonly p50: number
  readonly p99: number
  readonly failed: number
}

/** The neighbour: its requests begin when they are due, whether or not earlier ones were answered. */
const neighbour = async (): Promise<Figures> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const body = JSON.stringify({ channel: "webhook", to: endpoint, payloadJson: { hello: "world" } })
  const took: Array<number> = []
  let failed = 0
  const begin = performance.now()
  const all: Array<Promise<void>> = []
  for (let n = 0; n < SECONDS * PER_SECOND; n++) {
    const due = begin + (n * 1000) / PER_SECOND
    if (due > performance.now()) await sleep(due - performance.now())
    all.push(
      asked(agent, at, { bearer: key!, path: "/api/v1/outbound/messages", body, from: "127.0.0.2" }).then((status) => {
        took.push(performance.now() - due)
        if (status !== 201) failed += 1
      })
    )
  }
  await Promise.all(all)
  agent.destroy()
  took.sort((a, b) => a - b)
  const percentile = (share: number) =>
    Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))]! * 10) / 10
  return { p50: percentile(0.5), p99: percentile(0.99), failed }
}

const residentMB = () =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${posthaste.process.pid}/status`, "utf8"))![1]) / 1024)

const told = (name: string, { p50, p99, failed }: Figures, alone: Figures) =>
  console.log(
    `${name.padEnd(40)} p50 ${p50} ms  p99 ${p99} ms (${(p99 / alone.p99).toFixed(1)} × alone)  failed ${failed}  ${residentMB()} MB`
  )

await neighbour()
const alone = await neighbour()
told("alone", alone, alone)
for (const name of harms) {
  const stranger = new Worker(new URL("./stranger.ts", import.meta.url), { workerData: { name, at } })
  const gone = once(stranger, "exit")
  await sleep(1000)
  told(name, await neighbour(), alone)
  stranger.postMessage("enough")
  await gone
  await sleep(500)
}

await stop(posthaste)
rmSync(home, { recursive: true, force: true })
