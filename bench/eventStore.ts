/**
 * `npx node bench/eventStore.ts`: what it costs to keep the streams in EventStoreDB: single accepts and deliveries a second,
 * beside the same with PostgreSQL alone, in turns on one machine. The server is the stand-in of the tests, in a process
 * of its own, or the one that `EVENTSTORE_URL` names: with the stand-in, which writes to no disk, the figures are what the
 * adapter and the protocol cost, not what a server would.
 *
 *   --messages 10000  how many are delivered
 *   --seconds 10      how long single messages are accepted, over 32 connections
 *   --repeat 2        rounds; the median of the ratios is printed
 *
 * It fails when a message was lost.
 */
import { number, scriptFlags, whole } from "../test/servers/scriptFlags.ts"
import type { Client } from "./client.ts"
import { openDatabases } from "./databases.ts"
import { fill, openAccount, startPosthaste } from "./posthaste.ts"
import { isSound, reconcile } from "./reconcile.ts"
import { startRemote } from "./remote.ts"
import type { Sink } from "./sink.ts"
import type { StandInPart } from "./standIn.ts"

const given = scriptFlags({ messages: whole(10_000), seconds: number(10), repeat: whole(2) })
const bytes = 300
const { messages: count, seconds } = given
const connections = 32
const patienceMs = 20_000

const databases = await openDatabases()
const sink = startRemote<Sink>("sink.ts")
const standIn = startRemote<StandInPart>("standIn.ts")
let isEverythingThere = true

/** Where the streams are; nothing for PostgreSQL. */
const measure = async (settings: Record<string, string>, sinkUrl: string) => {
  const databaseUrl = await databases.create("streams")
  const api = await startPosthaste({ databaseUrl, roles: "api", settings })
  const account = await openAccount(api.url, sinkUrl)
  const client = startRemote<Client>("client.ts")
  const target = { url: api.url, account, bytes, connections }
  const warmUp = await client.ask("closedLoop", { ...target, seconds: 2 })
  const accepted = await client.ask("closedLoop", { ...target, seconds })
  await client.stop()
  const filled = await fill(api.url, account, { count, bytes })
  await api.stop()
  const ids = [...warmUp.ids, ...accepted.ids, ...filled]
  await sink.ask("clear")
  const worker = await startPosthaste({ databaseUrl, roles: "worker", settings })
  await sink.ask("arrived", { count: ids.length, patienceMs })
  await worker.stop()
  const seen = await sink.ask("report")
  isEverythingThere &&= isSound(reconcile(ids, seen))
  await databases.drop("streams")
  return {
    accepts: (accepted.ids.length * 1000) / accepted.elapsedMs,
    deliveries: ((ids.length - 1) * 1000) / (seen.lastAt - seen.firstAt)
  }
}

const median = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const row = (name: string, { accepts, deliveries }: { accepts: number; deliveries: number }) =>
  `${name.padEnd(28)}${String(Math.round(accepts)).padStart(10)}${String(Math.round(deliveries)).padStart(14)}`

try {
  const sinkUrl = await sink.ask("listen", { reply: "", bytes })
  const streams = process.env["EVENTSTORE_URL"] ?? (await standIn.ask("start"))
  const name = process.env["EVENTSTORE_URL"] === undefined ? "EventStoreDB (stand-in)" : "EventStoreDB"
  const ratios: Array<{ accepts: number; deliveries: number }> = []
  console.log(`${"streams in".padEnd(28)}${"accepts/s".padStart(10)}${"deliveries/s".padStart(14)}`)
  for (let n = 0; n < given.repeat; n++) {
    const postgres = await measure({}, sinkUrl)
    const other = await measure({ EVENTSTORE_URL: streams }, sinkUrl)
    console.log(row("PostgreSQL", postgres))
    console.log(row(name, other))
    ratios.push({ accepts: other.accepts / postgres.accepts, deliveries: other.deliveries / postgres.deliveries })
  }
  const of = (what: "accepts" | "deliveries") => median(ratios.map((ratio) => ratio[what])).toFixed(2)
  console.log(`ratio: accepts ${of("accepts")}, deliveries ${of("deliveries")}`)
  if (!isEverythingThere) {
    console.error("messages were lost, or some arrived that nobody accepted")
    process.exitCode = 1
  }
} finally {
  await standIn.stop()
  await sink.stop()
  await databases.close()
}
