/**
 * `npx node bench/rateLimit.ts`: what an endpoint with a rate limit gets from several workers, alone and while another endpoint keeps
 * all processes busy. The endpoint answers at once. Prints what it got ÷ its limit, and the fullest second by the receiver's clock.
 */
import type { RateLimit } from "../src/domain/delivery/rateLimit.ts"
import { scriptFlags } from "../test/servers/scriptFlags.ts"
import { openDatabases } from "./databases.ts"
import { fill, openEndpoint, openOrg, startPosthaste } from "./posthaste.ts"
import { startRemote } from "./remote.ts"
import type { Sink } from "./sink.ts"

scriptFlags({})
const WORKERS = Number(process.env["BENCH_WORKERS"] ?? 2)
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 20)
const BUSY = 60_000

const fullest = (times: ReadonlyArray<number>): number => {
  let [most, first] = [0, 0]
  for (const [nth, at] of times.entries()) {
    while (times[first]! <= at - 1_000) first++
    most = Math.max(most, nth - first + 1)
  }
  return most
}

const databases = await openDatabases()
const sink = startRemote<Sink>("sink.ts")
const receiver = await sink.ask("listen", { reply: "{}", bytes: 200 })
for (const limit of [50, 1_000]) {
  for (const isBusy of [false, true]) {
    const databaseUrl = await databases.create("rate_limit")
    const api = await startPosthaste({ databaseUrl, roles: "api" })
    const key = await openOrg(api.url)
    const endpoint = async (rateLimit?: RateLimit) => ({
      key,
      endpoints: [await openEndpoint(api.url, key, receiver, { maxInFlight: 256, ...(rateLimit && { rateLimit }) })]
    })
    const limited = await endpoint({ limit, periodMs: 1_000 })
    const ids = new Set(await fill(api.url, limited, { count: limit * SECONDS, bytes: 200 }))
    if (isBusy) await fill(api.url, await endpoint(), { count: BUSY, bytes: 200 })
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, () => startPosthaste({ databaseUrl, roles: "worker" }))
    )
    await sink.ask("arrived", { count: ids.size + (isBusy ? BUSY : 0), patienceMs: 10_000 })
    const { firstArrivals } = await sink.ask("report")
    const times = [...firstArrivals].filter(([id]) => ids.has(id)).map(([, at]) => at)
    const given = ((times.length - 1) * 1_000) / (times.at(-1)! - times[0]!) / limit
    console.log(
      `${limit}/s, ${WORKERS} workers, ${isBusy ? "busy" : "alone"}: ${times.length} of ${ids.size} came, given ÷ limit ${given.toFixed(3)}, fullest second ${fullest(times)}`
    )
    for (const { stop } of [...workers, api]) await stop()
    await sink.ask("clear")
  }
}
await sink.stop()
await databases.close()
