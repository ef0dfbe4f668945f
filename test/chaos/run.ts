/**
 * `npm run chaos`: faults strike real processes on a real PostgreSQL while clients send messages, and a witness outside says
 * what became of them. It ends with 1 when a message was lost, stuck or out of order, when the stored facts break a law, or
 * when Posthaste took longer than 15 s to serve again after a fault was over.
 *
 *   --minutes 10       how long faults strike
 *   --seed 1           which faults, when, and of whom; drawn when it is not given
 *   --only kill,freeze these kinds of faults: kill, restart, freeze, silence, wrongClock, crashDatabase, freezeDatabase, fillDisk
 *   --postgres DIR     the programs of another PostgreSQL, such as /usr/lib/postgresql/15/bin
 *   --keep             leaves the logs of all processes behind and says where
 *
 * To fill a disk it mounts a small one, which takes root; elsewhere it names that it did not try.
 *
 * Ctrl-C ends the faults, and what was done so far is judged; a second one ends everything at once. Nothing stays behind.
 */
import { randomInt } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { leaveNothingBehind, removeLeftovers, temporaryDirectory } from "../servers/leftovers.ts"
import { inOwnGroup } from "../servers/ownGroup.ts"
import { number, on, scriptFlags, someOf, text, whole } from "../servers/scriptFlags.ts"
import { campaign, type Report } from "./campaign.ts"
import { kinds } from "./plan.ts"

const RECOVERED_WITHIN_MS = 15_000
const SHOWN_MAX = 20

const given = scriptFlags({
  minutes: number(10, [0.1, 10_000]),
  seed: whole(null, [0, 999_999_999]),
  only: someOf(kinds),
  postgres: text("a directory", null),
  keep: on
})
const { only } = given
const seed = given.seed ?? randomInt(1_000_000)

const lastsMs = given.minutes * 60_000

await inOwnGroup()

let isStopped = false
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (isStopped) process.exit(130)
    isStopped = true
    say("stopped: what was done so far is judged; once more ends it at once")
  })
}
leaveNothingBehind()

const say = (line: string) => void process.stdout.write(`${line}\n`)

removeLeftovers()
const home = temporaryDirectory()
say(`seed ${seed}, ${given.minutes} min`)
const report = await campaign({
  home,
  seed,
  isOver: (_, passedMs) => isStopped || passedMs > lastsMs,
  kinds: only,
  faultLastsMaxMs: 20_000,
  roles: ["api,worker,projector,relay", "api,worker", "worker,projector"],
  programs: given.postgres,
  smallDisk: only.includes("fillDisk"),
  leaseMs: 5_000,
  clients: 8,
  pauseMs: 100,
  patienceMs: 60_000,
  restMs: 120_000,
  say
})

const late = ({ rounds }: Report) =>
  rounds.filter(({ recoveredMs }) => recoveredMs === null || recoveredMs > RECOVERED_WITHIN_MS)
const slowest = Math.max(0, ...report.rounds.map(({ recoveredMs }) => recoveredMs ?? Number.POSITIVE_INFINITY))

const list = (title: string, items: ReadonlyArray<string>) => {
  for (const item of items.slice(0, SHOWN_MAX)) say(`  ${title}: ${item}`)
  if (items.length > SHOWN_MAX) say(`  ${title}: and ${items.length - SHOWN_MAX} more`)
}
const isClean = report.verified.exitCode === 0
say("")
say(
  `${report.accepted} messages of ${report.lines} lines accepted, ${report.requests} requests, ${report.repeated} of them after a 2xx, in ${report.rounds.length} rounds of faults`
)
say(
  `lost ${report.lost.length}, stuck ${report.stuck}, out of order ${report.outOfOrder.length}, verify ${isClean ? "clean" : "NOT CLEAN"}, ` +
    `recovered within ${(slowest / 1_000).toFixed(1)} s`
)
list("lost", report.lost)
list("out of order", report.outOfOrder)
list("strange", report.strange)
list(
  "late",
  late(report).map(({ faults }) => faults)
)
list("ended by itself", report.endedByThemselves)
if (report.miscounted !== null) say(`  the counts of the API differ: ${report.miscounted}`)
if (!isClean) say(report.verified.said)

const isGood =
  isClean &&
  report.miscounted === null &&
  [report.lost, report.outOfOrder, report.strange, late(report), report.endedByThemselves].every(
    ({ length }) => length === 0
  )
rmSync(home, { recursive: true, force: true })
if (given.keep || !isGood) {
  const kept = mkdtempSync(join(tmpdir(), "posthaste-chaos-"))
  for (const [name, text] of Object.entries(report.printed)) writeFileSync(join(kept, `${name}.log`), text)
  say(`the logs of all processes are in ${kept}; the same faults again: npm run chaos -- --seed ${seed}`)
}
process.exitCode = isGood ? 0 : 1
