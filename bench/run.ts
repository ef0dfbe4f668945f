/**
 * `npm run bench`: what Posthaste costs over a bare loop of POSTs, and how it compares with two job queues on the same
 * PostgreSQL, in one run on one machine. It prints ratios and asserts no time, because machines differ; it fails
 * when a message was lost, because that may never happen.
 *
 *   --only b,d        only these parts (a bare loop, b Posthaste, c others, d latency, e accepts, f claims,
 *                     g healthy destinations beside one that hangs, h one ordering key alone, i events to many endpoints,
 *                     j a stock PostgreSQL before its first analyze, m being watched by metrics and traces)
 *   --messages 40000  how many are delivered in a, b, c and m
 *   --repeat 3        rounds of a, b, c, g and m; ratios are taken within a round, then the median of the rounds
 *   --reply ""        what the sink answers; a text is kept with every attempt, which costs Posthaste a row each
 *   --quick           a small run that only shows that everything works
 *   --json            the report as JSON on standard output instead of tables
 *   --cpu-prof DIR    a CPU profile of Posthaste's worker in part b, into DIR
 *
 * The report is also written to bench/results/.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { cpus, loadavg, totalmem } from "node:os"
import { resolve } from "node:path"
import { on, scriptFlags, someOf, text, whole } from "../test/servers/scriptFlags.ts"
import { measureAccepts } from "./accepts.ts"
import { measureClaims } from "./claims.ts"
import { openDatabases } from "./databases.ts"
import { type Course, deliverBare, deliverGraphile, deliverPgBoss, deliverPosthaste } from "./deliveries.ts"
import { measureFanOut } from "./fanOut.ts"
import { measureIsolation } from "./isolation.ts"
import { measureLatency } from "./latency.ts"
import { measureOneKey } from "./oneKey.ts"
import { isSound } from "./reconcile.ts"
import { startRemote } from "./remote.ts"
import { contestants, print, type Report, type Round, ratios, reconciliations } from "./report.ts"
import type { Sink } from "./sink.ts"
import { measureStock } from "./stock.ts"
import { collecting, scraping } from "./watched.ts"

const given = scriptFlags({
  only: someOf(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "m"]),
  messages: whole(null),
  repeat: whole(null),
  reply: text("a text", ""),
  quick: on,
  json: on,
  "cpu-prof": text("a directory", null)
})

const parts = new Set<string>(given.only)
const size = given.quick
  ? { messages: 4000, repeat: 1, warmUpSeconds: 1, seconds: 2, waiting: [1000, 20_000], hangMs: 1000 }
  : { messages: 40_000, repeat: 3, warmUpSeconds: 4, seconds: 20, waiting: [10_000, 1_000_000], hangMs: 10_000 }
const messages = given.messages ?? size.messages
const repeat = given.repeat ?? size.repeat
const bytes = 300

const progress = (line: string): void => void process.stderr.write(`${line}\n`)

const deliverInRounds = async (course: Course): Promise<ReadonlyArray<Round>> => {
  const entrants = [
    ["a", "bare", () => deliverBare(course)],
    ["b", "posthaste", () => deliverPosthaste(course, "worker")],
    ["m", "posthasteScraped", () => deliverPosthaste(course, "worker", { watching: scraping })],
    ["m", "posthasteTraced", () => deliverPosthaste(course, "worker", { watching: collecting })],
    ["c", "graphileTuned", () => deliverGraphile(course, "tuned")],
    ["b", "posthasteListing", () => deliverPosthaste(course, "worker,projector")],
    ["c", "pgBoss", () => deliverPgBoss(course)],
    ["c", "graphileDefault", () => deliverGraphile(course, "default")]
  ] as const
  const rounds: Array<Round> = []
  for (let n = 1; n <= repeat; n++) {
    const round: { -readonly [C in keyof Round]: Round[C] } = {}
    for (const [part, contestant, deliver] of entrants) {
      if (!parts.has(part)) continue
      round[contestant] = await deliver()
      progress(`round ${n} of ${repeat}: ${contestants[contestant]} ${Math.round(round[contestant].perSecond)}/s`)
    }
    rounds.push(round)
  }
  return rounds
}

const measure = async (course: Course): Promise<Report> => {
  const [loadBefore] = loadavg()
  const rounds = await deliverInRounds(course)
  const latency = parts.has("d") ? await measureLatency(course, [200, 1000], size) : []
  if (latency.length > 0) progress("latency measured")
  const accepts = parts.has("e") ? await measureAccepts(course, size.seconds / 2) : null
  if (accepts !== null) progress(`accepts ${Math.round(accepts.perSecond)}/s`)
  const claims = []
  for (const lanes of parts.has("f") ? [1, 100] : [])
    for (const waiting of size.waiting) {
      claims.push(...(await measureClaims(course, { waiting, lanes })))
      progress(`claims measured with ${waiting} waiting in ${lanes} lanes`)
    }
  const waiting = size.waiting.at(-1)!
  const isolation = parts.has("g") ? await measureIsolation(course, { ...size, waiting, repeat }, progress) : null
  const oneKey = parts.has("h") ? await measureOneKey(course) : null
  if (oneKey !== null) progress(`one key alone ${Math.round(oneKey.alone.perSecond)}/s`)
  const fanOut = parts.has("i") ? await measureFanOut(course, { ...size, events: given.quick ? 5 : 50 }) : null
  if (fanOut !== null) progress("events measured")
  const stock = parts.has("j") ? await measureStock(course) : null
  if (parts.has("j"))
    progress(stock === null ? "no PostgreSQL is installed: j is left out" : "a stock PostgreSQL measured")
  return {
    at: new Date().toISOString(),
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      "memory GiB": Math.round(totalmem() / 2 ** 30),
      node: process.version,
      // Others at work on the machine make every figure below worth less.
      "load before": Number(loadBefore!.toFixed(1))
    },
    server: course.databases.settings,
    messages,
    bytes,
    reply: given.reply,
    rounds,
    latency,
    accepts,
    claims,
    isolation,
    oneKey,
    fanOut,
    stock
  }
}

const databases = await openDatabases()
const sink = startRemote<Sink>("sink.ts")
try {
  if (databases.settings["fsync"] !== "on" || databases.settings["synchronous_commit"] !== "on")
    throw new Error("the server must run with fsync and synchronous_commit on: without them nothing here is durable")
  const sinkUrl = await sink.ask("listen", { reply: given.reply, bytes })
  const cpuProf = given["cpu-prof"] === null ? null : resolve(given["cpu-prof"])
  const report = await measure({ databases, sink, sinkUrl, count: messages, bytes, cpuProf })
  const json = JSON.stringify({ ...report, ratios: ratios(report) }, null, 2)
  const results = new URL("results/", import.meta.url)
  await mkdir(results, { recursive: true })
  await writeFile(new URL(`${report.at.replaceAll(":", "-")}.json`, results), json)
  process.stdout.write(`${given.json ? json : print(report)}\n`)
  if (!reconciliations(report).every(isSound)) process.exitCode = 1
} finally {
  await sink.stop()
  await databases.close()
}
