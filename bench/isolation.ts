/**
 * (g) What a destination that hangs does to the others: 99 healthy ones share 200 messages a second, first alone, then
 * beside one that lets every request hang until its deadline while 1,000,000 messages wait for it.
 *
 * Posthaste is one process in all its roles, as `npm start` runs it. Every destination is an origin of its own, so each
 * has connections of its own. Two databases are kept for the whole part, one with the backlog and one without, and each
 * measurement gets a fresh process on one of them; both situations take turns, and ratios are taken within a round.
 *
 * In the rounds the circuit allows more failures than there can be, so that as many requests as the hanging destination
 * may have in flight hang all the time. With the circuit as Posthaste has it there is silence after the first deadlines,
 * which is easier on the others; that is measured once, after the rounds, because a circuit that was open lets traffic
 * back in slowly from then on.
 *
 * The backlog is accepted over HTTP, so all rows are those that Posthaste leaves. The projector lists it before the
 * rounds: for a while after such a flood it works without a pause, which is what the flood costs and not the destination
 * that hangs. That time is measured once, for itself.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Client } from "./client.ts"
import { cpuSeconds } from "./cpuTime.ts"
import { query, settle } from "./databases.ts"
import { type Course, type CpuMicroseconds, perMessage } from "./deliveries.ts"
import type { Hanging } from "./hanging.ts"
import { type Latency, latencyOf, type Offer } from "./latency.ts"
import { type Account, fill, openEndpoint, openOrg, startPosthaste } from "./posthaste.ts"
import { type Remote, startRemote } from "./remote.ts"

export interface Situation extends Latency {
  /** CPU time for one message of the healthy ones, warming up included. It tells the work apart from a busy machine. */
  readonly cpu: CpuMicroseconds
  /** What the hanging destination saw while the others were measured, warming up included; null where there is none. */
  readonly hanging: { readonly requests: number; readonly underWayMax: number } | null
}

export interface IsolationRound {
  readonly alone: Situation
  readonly beside: Situation
}

export interface Isolation {
  readonly healthy: number
  readonly waiting: number
  readonly hangMs: number
  /** The circuit of the hanging destination never opens. */
  readonly rounds: ReadonlyArray<IsolationRound>
  /** Its circuit is as Posthaste has it. */
  readonly opening: IsolationRound
  /** As beside it in the rounds, while the backlog is being listed; `left` is what was not listed at the end. */
  readonly listing: Situation & { readonly left: number }
}

export interface Shape extends Pick<Offer, "warmUpSeconds" | "seconds"> {
  readonly waiting: number
  readonly hangMs: number
  readonly repeat: number
}

const healthy = 99
const perSecond = 200
const neverOpens = { POSTHASTE_CIRCUIT_FAILURES: "1000000" }

interface Scene {
  readonly databaseUrl: string
  readonly account: Account
  readonly hanging: string | null
}

export const measureIsolation = async (
  course: Course,
  shape: Shape,
  progress: (line: string) => void
): Promise<Isolation> => {
  const { databases, sink } = course
  const receivers: Array<string> = []
  while (receivers.length < healthy) receivers.push(await sink.ask("listen", { reply: "", bytes: course.bytes }))
  const hanging = startRemote<Hanging>("hanging.ts")
  const client = startRemote<Client>("client.ts")
  const hangingUrl = await hanging.ask("listen")
  const measure = (scene: Scene, settings: Readonly<Record<string, string>> = {}): Promise<Situation> =>
    measureSituation(course, client, hanging, scene, shape, settings)

  const alone = await setScene(await databases.create("alone"), receivers)
  const beside = await setScene(await databases.create("beside"), receivers, {
    ...shape,
    url: hangingUrl,
    bytes: course.bytes
  })
  progress(`${shape.waiting} messages wait for the destination that hangs`)
  await settle(beside.databaseUrl)
  const listing = { ...(await measure(beside, neverOpens)), left: await unlisted(beside.databaseUrl) }
  progress(`${listing.left} of them are not listed yet`)
  await listAll(beside.databaseUrl)

  const measureRound = async (settings?: Readonly<Record<string, string>>): Promise<IsolationRound> => {
    await settle(alone.databaseUrl)
    await settle(beside.databaseUrl)
    return { alone: await measure(alone, settings), beside: await measure(beside, settings) }
  }
  const rounds: Array<IsolationRound> = []
  for (let n = 1; n <= shape.repeat; n++) {
    const round = await measureRound(neverOpens)
    progress(`round ${n} of ${shape.repeat}: p99 ${p99Of(round)}`)
    rounds.push(round)
  }
  const opening = await measureRound()
  progress(`with a circuit that opens: p99 ${p99Of(opening)}`)
  await client.stop()
  await hanging.stop()
  await databases.drop("alone")
  await databases.drop("beside")
  return { healthy, waiting: shape.waiting, hangMs: shape.hangMs, rounds, opening, listing }
}

/** The healthy destinations and, if asked for, one that hangs with its backlog, accepted by a process that then ends. */
const setScene = async (
  databaseUrl: string,
  receivers: ReadonlyArray<string>,
  backlog?: { readonly url: string; readonly waiting: number; readonly hangMs: number; readonly bytes: number }
): Promise<Scene> => {
  const { url, stop } = await startPosthaste({ databaseUrl, roles: "api" })
  const key = await openOrg(url)
  const endpoints: Array<string> = []
  for (const receiver of receivers) endpoints.push(await openEndpoint(url, key, receiver))
  const hanging =
    backlog === undefined ? null : await openEndpoint(url, key, backlog.url, { timeoutMs: backlog.hangMs })
  if (backlog !== undefined)
    await fill(url, { key, endpoints: [hanging!] }, { count: backlog.waiting, bytes: backlog.bytes })
  await stop()
  return { databaseUrl, account: { key, endpoints }, hanging }
}

const measureSituation = async (
  course: Course,
  client: Remote<Client>,
  receiver: Remote<Hanging>,
  { databaseUrl, account, hanging }: Scene,
  { warmUpSeconds, seconds }: Shape,
  settings: Readonly<Record<string, string>>
): Promise<Situation> => {
  const service = await startPosthaste({ databaseUrl, settings })
  await receiver.ask("clear")
  const serverBefore = await course.databases.cpuSeconds()
  const ownBefore = cpuSeconds(service.pid)
  const latency = await latencyOf(course, client, { url: service.url, account, perSecond, warmUpSeconds, seconds })
  const own = perMessage(latency.reconciliation.sent, ownBefore, cpuSeconds(service.pid))
  const server = perMessage(latency.reconciliation.sent, serverBefore, await course.databases.cpuSeconds())
  const seen = await receiver.ask("seen")
  await service.stop()
  return { ...latency, cpu: { own, server }, hanging: hanging === null ? null : seen }
}

/** How many messages the lists do not show yet. */
const unlisted = async (databaseUrl: string): Promise<number> => {
  const [row] = await query<{ unlisted: string }>(
    databaseUrl,
    `select count(*) as unlisted from posthaste.message m
       where not exists (select 1 from posthaste.message_view v where v.id = m.id)`
  )
  return Number(row!.unlisted)
}

const listAll = async (databaseUrl: string): Promise<void> => {
  const projector = await startPosthaste({ databaseUrl, roles: "projector" })
  while ((await unlisted(databaseUrl)) > 0) await sleep(2000)
  await projector.stop()
}

const p99Of = ({ alone, beside }: IsolationRound): string =>
  `${alone.acceptedToReceived.p99.toFixed(1)} ms alone, ${beside.acceptedToReceived.p99.toFixed(1)} ms beside`
