/**
 * `npx node bench/hostile.ts [words of the harms to do, all without any]`: what a hostile org does to another. An org sends 50 messages a second to an endpoint that is well, and
 * another org does harm at full tilt. Prints how long its messages took to be accepted and to be received, from when each was due; how
 * many were refused or never came; attempts it took beyond one a message; and the memory of the process. The hostile org has a process
 * of its own, and so has the receiver.
 *
 * All of them share the cores of one machine, so not all that the neighbour waits longer is Posthaste's doing. So for each harm three
 * situations follow each other, in one run on the same process:
 *
 *   alone        nobody else asks for anything
 *   beside       the hostile org does harm to Posthaste
 *   the machine  the hostile org sends the same, as often in a second as it just could, to a server that only reads and answers
 *
 * Each harm has an org of its own, which is suspended but for "beside": what one harm leaves behind is no part of other figures.
 *
 * What "beside" has beyond "the machine" is Posthaste's part: the event loop, whose delay is printed with it, and the database.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { Agent } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { startPosthaste, stop } from "../test/servers/posthaste.ts"
import { scriptFlags } from "../test/servers/scriptFlags.ts"
import { asked } from "./asked.ts"
import { type HostileOrg, harmsOfOrgs } from "./hostileOrg.ts"
import type { IdleServer } from "./idleServer.ts"
import { monotonicNow } from "./monotonicNow.ts"
import { startRemote } from "./remote.ts"
import { percentile } from "./statistics.ts"
import type { TwoFaced } from "./twoFaced.ts"

scriptFlags({}, (words) => harmsOfOrgs.some((name) => name.includes(words)))
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 10)
const PER_SECOND = 50
/** Of the hostile org, waiting in its lists. */
const MESSAGES = Number(process.env["BENCH_MESSAGES"] ?? 50_000)

const home = mkdtempSync(join(tmpdir(), "posthaste-hostile-"))
const posthaste = await startPosthaste({
  POSTHASTE_DATA_DIR: home,
  POSTHASTE_LOG_LEVEL: "error",
  NODE_OPTIONS: `--import ${join(import.meta.dirname, "loopDelay.ts")}`,
  POSTHASTE_ALLOWED_NETWORKS: "127.0.0.0/8"
})
const { hostname, port } = new URL(posthaste.url)
const at = { hostname, port }
const operator = readFileSync(join(home, "operator-key"), "utf8").trim()

const call = async (method: string, path: string, key: string, body?: object) => {
  const response = await fetch(`${posthaste.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
  return JSON.parse(text) as Record<string, never>
}
const keyOf = async (orgId: string): Promise<string> =>
  (await call("POST", "/api-keys", operator, { orgId, name: "bench" }))["key"]!

const receiver = startRemote<TwoFaced>("twoFaced.ts")
const hostile = startRemote<HostileOrg>("hostileOrg.ts")
const url = await receiver.ask("listen")
const good = await keyOf("good")
const endpoint = (await call("POST", "/webhook-endpoints", good, { url: `${url}/good` }))["id"] as unknown as string

/** How late the event loop of Posthaste was while `work` was done. */
const watched = async <A>(work: Promise<A>): Promise<readonly [A, string]> => {
  posthaste.process.kill("SIGUSR2")
  const done = await work
  const before = posthaste.printed().length
  posthaste.process.kill("SIGUSR2")
  const line = () => /loop .* late/.exec(posthaste.printed().slice(before))?.[0]
  while (line() === undefined) await sleep(20)
  return [done, line()!]
}

interface Figures {
  readonly accept: { readonly p50: number; readonly p99: number }
  readonly receive: { readonly p50: number; readonly p99: number }
  readonly failed: number
  readonly burnt: number
}

/** Its requests begin when they are due, whether or not earlier ones were answered. */
const neighbour = async (): Promise<Figures> => {
  await receiver.ask("clear")
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const count = SECONDS * PER_SECOND
  const accepts: Array<number> = []
  let refused = 0
  const begin = monotonicNow() + 100
  const dueAt = (n: number) => begin + (n * 1000) / PER_SECOND
  const all: Array<Promise<void>> = []
  for (let n = 0; n < count; n++) {
    while (monotonicNow() < dueAt(n)) await sleep(1)
    const body = JSON.stringify({ channel: "webhook", to: endpoint, payloadJson: { n } })
    const request = { bearer: good, path: "/api/v1/outbound/messages", body, from: "127.0.0.2" }
    all.push(
      asked(agent, at, request).then((status) => {
        accepts.push(monotonicNow() - dueAt(n))
        if (status !== 201) refused += 1
      })
    )
  }
  await Promise.all(all)
  agent.destroy()
  let seen = await receiver.ask("seen")
  for (let waited = 0; waited < 30_000 && seen.firstArrivals.size < count - refused; waited += 100) {
    await sleep(100)
    seen = await receiver.ask("seen")
  }
  const receives = [...seen.firstArrivals].map(([n, arrivedAt]) => arrivedAt - dueAt(n))
  const of = (figures: ReadonlyArray<number>) => ({ p50: percentile(figures, 50), p99: percentile(figures, 99) })
  return {
    accept: of(accepts),
    receive: of(receives),
    failed: refused + (count - refused - seen.firstArrivals.size),
    burnt: seen.received - seen.firstArrivals.size
  }
}

/** Suspended, it is sent nothing; the lists may lag behind for a moment more. */
const suspend = async (org: string, suspended: string | null) => {
  await call("PUT", `/orgs/${org}`, operator, { suspended })
  await sleep(3_000)
}

const residentMB = () =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${posthaste.process.pid}/status`, "utf8"))![1]) / 1024)

const told = (situation: string, { accept, receive, failed, burnt }: Figures, alone: Figures, more: string) => {
  const figures = (now: Figures["accept"], before: Figures["accept"]) =>
    `p50 ${now.p50.toFixed(1)} p99 ${now.p99.toFixed(1)} ms (${(now.p99 / before.p99).toFixed(1)} ×)`
  console.log(
    `  ${situation.padEnd(12)} accepted ${figures(accept, alone.accept)}  received ${figures(receive, alone.receive)}` +
      `  failed ${failed}  burnt ${burnt}  ${residentMB()} MB  ${more}`
  )
}

/** How many times as long the neighbour's slowest waited beside the harm as beside the same requests to nobody. */
const beyond = (beside: Figures, machine: Figures) =>
  (["accept", "receive"] as const)
    .map(
      (kind) => `${kind === "accept" ? "accepted" : "received"} ${(beside[kind].p99 / machine[kind].p99).toFixed(1)} ×`
    )
    .join(", ")

const idle = startRemote<IdleServer>("idleServer.ts")
const elsewhere = startRemote<HostileOrg>("hostileOrg.ts")
await elsewhere.ask("open", { url: await idle.ask("listen"), key: "none", receiver: url, messages: 0 })
await neighbour()
const wanted = process.argv.slice(2)
console.log(`${SECONDS * PER_SECOND} messages of the neighbour in each situation; (… ×) is p99 beside that of "alone"`)
for (const name of harmsOfOrgs.filter((name) => wanted.length === 0 || wanted.some((words) => name.includes(words)))) {
  console.log(name)
  const org = `hostile-${harmsOfOrgs.indexOf(name)}`
  await hostile.ask("open", { url: posthaste.url, key: await keyOf(org), receiver: url, messages: MESSAGES })
  await suspend(org, "measured without it")
  const [alone, loopAlone] = await watched(neighbour())
  told("alone", alone, alone, loopAlone)
  await suspend(org, null)
  await hostile.ask("begin", { name })
  await sleep(2_000)
  const [beside, loop] = await watched(neighbour())
  const { told: answers, perSecond } = await hostile.ask("end")
  told("beside", beside, alone, `${loop}; ${answers}`)
  await suspend(org, "measured without it")
  await elsewhere.ask("begin", { name, most: perSecond })
  await sleep(1_000)
  const machine = await neighbour()
  told("the machine", machine, alone, (await elsewhere.ask("end")).told)
  console.log(`  p99 beyond the machine's part: ${beyond(beside, machine)}`)
}
await elsewhere.stop()
await idle.stop()
await hostile.stop()
await receiver.stop()
await stop(posthaste)
rmSync(home, { recursive: true, force: true })
