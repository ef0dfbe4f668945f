/**
 * (a) (b) (c): everybody delivers the same number of messages of the same size to the same sink.
 *
 * Each contestant fills its queue, ends, gets its database settled and delivers from a fresh process, so all of them
 * start cold. What is timed is the sink's clock: first arrival to last.
 *
 * What differs is theirs by design: the queues mark a job once per try and delete or complete it; Posthaste commits
 * `AttemptStarted` before a byte leaves and the outcome after it. Every such write is flushed to disk by everybody;
 * only Posthaste's claim itself is not, because a lost claim loses nothing.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Bare } from "./bare.ts"
import { cpuSeconds } from "./cpuTime.ts"
import { type Databases, query, settle } from "./databases.ts"
import type { Graphile, GraphileSetting } from "./graphile.ts"
import { monotonicNow } from "./monotonicNow.ts"
import type { PgBossContestant } from "./pgBoss.ts"
import { fill, openAccount, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"
import { type Remote, startRemote } from "./remote.ts"
import type { Sink } from "./sink.ts"
import type { Watch } from "./watched.ts"

export interface Delivery {
  /** First arrival to last. */
  readonly perSecond: number
  /** The last three quarters of the arrivals: what remains when the process has warmed up. */
  readonly steadyPerSecond: number
  /** From the moment its process was ready to the last arrival; null where there is no such moment. */
  readonly fromReadyPerSecond: number | null
  /** First arrival until its own database says that every message is done; null for the bare loop, which has none. */
  readonly settledPerSecond: number | null
  /** First arrival until Posthaste's lists show every message as delivered; null where nobody keeps lists. */
  readonly listedPerSecond: number | null
  /** CPU time for one message, until it is settled and listed: of the process that delivers, and of PostgreSQL. */
  readonly cpu: CpuMicroseconds
  readonly reconciliation: Reconciliation
}

export interface CpuMicroseconds {
  readonly own: number | null
  readonly server: number | null
}

export interface Course {
  readonly databases: Databases
  readonly sink: Remote<Sink>
  readonly sinkUrl: string
  readonly count: number
  readonly bytes: number
  /** Where to put CPU profiles of Posthaste's worker; null for none. */
  readonly cpuProf: string | null
}

/** How long nothing may arrive before what is missing counts as lost. */
const patienceMs = 20_000
const finishWithinMs = 60_000

interface Contestant {
  readonly databaseUrl: string
  /** What its queue holds, under the names the sink will see. */
  readonly ids: ReadonlyArray<string>
  /** Starts the process that delivers. */
  readonly start: () => Promise<{
    readonly pid: number
    readonly readyAt: number
    readonly stop: () => Promise<void>
  }>
  /** SQL that counts what its database does not yet have as done. */
  readonly unfinished: string
  /** SQL that counts what its lists do not yet show as done. */
  readonly unlisted?: string | undefined
  /** Whether its tables are analyzed before it begins. */
  readonly isAnalyzed?: boolean
}

const deliver = async (course: Course, contestant: Contestant): Promise<Delivery> => {
  const { databases, sink, count } = course
  await (contestant.isAnalyzed === false ? query(contestant.databaseUrl, "checkpoint") : settle(contestant.databaseUrl))
  await sink.ask("clear")
  const serverBefore = await databases.cpuSeconds()
  const worker = await contestant.start()
  const ownBefore = cpuSeconds(worker.pid)
  // Of messages that never arrive there is no end to wait for; the reconciliation names them.
  const complete = await sink.ask("arrived", { count, patienceMs })
  const settledAt = complete ? await finished(contestant.databaseUrl, contestant.unfinished) : null
  const listedAt =
    complete && contestant.unlisted !== undefined ? await finished(contestant.databaseUrl, contestant.unlisted) : null
  const ownAfter = cpuSeconds(worker.pid)
  const serverAfter = await databases.cpuSeconds()
  await worker.stop()
  const arrivals = await sink.ask("report")
  const { firstAt, lastAt } = arrivals
  return {
    ...pace(arrivals.firstArrivals),
    fromReadyPerSecond: rate(count, lastAt - worker.readyAt),
    settledPerSecond: settledAt === null ? null : rate(count, settledAt - firstAt),
    listedPerSecond: listedAt === null ? null : rate(count, listedAt - firstAt),
    cpu: { own: perMessage(count, ownBefore, ownAfter), server: perMessage(count, serverBefore, serverAfter) },
    reconciliation: reconcile(contestant.ids, arrivals)
  }
}

const rate = (messages: number, ms: number): number => (messages * 1000) / ms

const pace = (firstArrivals: ReadonlyMap<string, number>) => {
  const times = [...firstArrivals.values()]
  const quarter = Math.floor(times.length / 4)
  const from = (start: number) => rate(times.length - 1 - start, times.at(-1)! - times[start]!)
  return { perSecond: from(0), steadyPerSecond: from(quarter) }
}

export const perMessage = (count: number, before: number | null, after: number | null): number | null =>
  before === null || after === null ? null : ((after - before) * 1e6) / count

/** When the database agrees that nothing is left. One that never does, though everything arrived, ends the run. */
const finished = async (databaseUrl: string, unfinished: string): Promise<number> => {
  const giveUpAt = monotonicNow() + finishWithinMs
  for (;;) {
    const [row] = await query<{ unfinished: string }>(databaseUrl, `select (${unfinished}) as unfinished`)
    const now = monotonicNow()
    if (Number(row!.unfinished) === 0) return now
    if (now > giveUpAt) throw new Error(`${row!.unfinished} messages are not done by: ${unfinished}`)
    await sleep(20)
  }
}

export const deliverBare = async (course: Course): Promise<Delivery> => {
  const bare = startRemote<Bare>("bare.ts")
  await course.sink.ask("clear")
  const ids = await bare.ask("run", { sinkUrl: course.sinkUrl, count: course.count, bytes: course.bytes })
  const own = perMessage(course.count, 0, cpuSeconds(bare.pid))
  await bare.stop()
  const arrivals = await course.sink.ask("report")
  return {
    ...pace(arrivals.firstArrivals),
    fromReadyPerSecond: null,
    settledPerSecond: null,
    listedPerSecond: null,
    cpu: { own, server: null },
    reconciliation: reconcile(ids, arrivals)
  }
}

/** `roles` without `api`: the queue was filled by a process that is gone. */
export const deliverPosthaste = async (
  course: Course,
  roles: string,
  { watching, isAnalyzed = true }: { readonly watching?: () => Promise<Watch>; readonly isAnalyzed?: boolean } = {}
): Promise<Delivery> => {
  const databaseUrl = await course.databases.create("posthaste")
  const watch = await watching?.()
  const settings = watch?.settings ?? {}
  const api = await startPosthaste({ databaseUrl, roles: "api", settings })
  const account = await openAccount(api.url, course.sinkUrl)
  const ids = await fill(api.url, account, course)
  await api.stop()
  const profile = ["--cpu-prof", `--cpu-prof-dir=${course.cpuProf}`, `--cpu-prof-name=${roles}-\${pid}.cpuprofile`]
  const delivery = await deliver(course, {
    databaseUrl,
    ids,
    isAnalyzed,
    start: () => startPosthaste({ databaseUrl, roles, settings, execArgv: course.cpuProf === null ? [] : profile }),
    unfinished: `select ${course.count} - count(*) from posthaste.event where name like 'MessageDelivered@%'`,
    unlisted: roles.includes("projector")
      ? `select ${course.count} - count(*) from posthaste.message_view where status = 'DELIVERED'`
      : undefined
  })
  await watch?.stop()
  await course.databases.drop("posthaste")
  return delivery
}

export const deliverGraphile = async (course: Course, setting: GraphileSetting): Promise<Delivery> => {
  const databaseUrl = await course.databases.create("graphile")
  const filler = startRemote<Graphile>("graphile.ts")
  const ids = await filler.ask("fill", { databaseUrl, count: course.count, bytes: course.bytes })
  await filler.stop()
  const delivery = await deliver(course, {
    databaseUrl,
    ids,
    start: async () => {
      const worker = startRemote<Graphile>("graphile.ts")
      const readyAt = await worker.ask("ready")
      await worker.ask("start", { databaseUrl, sinkUrl: course.sinkUrl, setting })
      return { pid: worker.pid, readyAt, stop: () => worker.ask("stop").then(worker.stop) }
    },
    unfinished: "select count(*) from graphile_worker._private_jobs"
  })
  await course.databases.drop("graphile")
  return delivery
}

export const deliverPgBoss = async (course: Course): Promise<Delivery> => {
  const databaseUrl = await course.databases.create("pg_boss")
  const filler = startRemote<PgBossContestant>("pgBoss.ts")
  const ids = await filler.ask("fill", { databaseUrl, count: course.count, bytes: course.bytes })
  await filler.stop()
  const delivery = await deliver(course, {
    databaseUrl,
    ids,
    start: async () => {
      const worker = startRemote<PgBossContestant>("pgBoss.ts")
      const readyAt = await worker.ask("ready")
      await worker.ask("start", { databaseUrl, sinkUrl: course.sinkUrl })
      return { pid: worker.pid, readyAt, stop: () => worker.ask("stop").then(worker.stop) }
    },
    unfinished: "select count(*) from pgboss.job where name = 'post' and state <> 'completed'"
  })
  await course.databases.drop("pg_boss")
  return delivery
}
