/**
 * (d) From accepted to received, with one Posthaste process in all its roles, as `npm start` runs it.
 */
import type { Client, Sent } from "./client.ts"
import type { Course } from "./deliveries.ts"
import { type Account, openAccount, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"
import { type Remote, startRemote } from "./remote.ts"
import { percentile } from "./statistics.ts"

export interface Latency {
  readonly offeredPerSecond: number
  readonly acceptedToReceived: Percentiles
  /** From the moment it was to be sent: includes the accept, and any waiting in front of it. */
  readonly scheduledToReceived: Percentiles
  /** From the last scheduled send to the last arrival: small when the service kept up. */
  readonly drainMs: number
  readonly reconciliation: Reconciliation
}

export interface Percentiles {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export const percentiles = (values: ReadonlyArray<number>): Percentiles => ({
  p50: percentile(values, 50),
  p99: percentile(values, 99),
  max: percentile(values, 100)
})

export interface Offer {
  readonly url: string
  readonly account: Account
  readonly perSecond: number
  /** What goes first at the same rate and is not counted, so that a fresh process is not what is measured. */
  readonly warmUpSeconds: number
  readonly seconds: number
}

export const measureLatency = async (
  course: Course,
  rates: ReadonlyArray<number>,
  duration: Pick<Offer, "warmUpSeconds" | "seconds">
): Promise<ReadonlyArray<Latency>> => {
  const databaseUrl = await course.databases.create("latency")
  const service = await startPosthaste({ databaseUrl })
  const account = await openAccount(service.url, course.sinkUrl)
  const client = startRemote<Client>("client.ts")
  const results: Array<Latency> = []
  for (const perSecond of rates) {
    results.push(await latencyOf(course, client, { url: service.url, account, perSecond, ...duration }))
  }
  await client.stop()
  await service.stop()
  await course.databases.drop("latency")
  return results
}

/** Offers messages to a service that runs, and waits until all of them arrived; also what warms up is reconciled. */
export const latencyOf = async (
  { sink, bytes }: Course,
  client: Remote<Client>,
  { warmUpSeconds, ...offer }: Offer
): Promise<Latency> => {
  const target = { ...offer, bytes }
  await sink.ask("clear")
  const warmUp = await client.ask("openLoop", { ...target, seconds: warmUpSeconds })
  const sent = await client.ask("openLoop", target)
  await sink.ask("arrived", { count: warmUp.size + sent.size, patienceMs: 10_000 })
  const arrivals = await sink.ask("report")
  const received = [...sent].flatMap(([id, times]) => {
    const at = arrivals.firstArrivals.get(id)
    return at === undefined ? [] : [{ ...times, at }]
  })
  return {
    offeredPerSecond: offer.perSecond,
    acceptedToReceived: percentiles(received.map(({ at, acceptedAt }) => at - acceptedAt)),
    scheduledToReceived: percentiles(received.map(({ at, scheduledAt }) => at - scheduledAt)),
    drainMs: arrivals.lastAt - lastScheduled(sent),
    reconciliation: reconcile([...warmUp.keys(), ...sent.keys()], arrivals)
  }
}

const lastScheduled = (sent: ReadonlyMap<string, Sent>): number =>
  [...sent.values()].reduce((last, { scheduledAt }) => Math.max(last, scheduledAt), 0)
