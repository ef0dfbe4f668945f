/**
 * (e) How many single messages a second a Posthaste that only accepts (`api`) commits and answers with 201, asked over
 * 32 connections. A worker then delivers them all, because an acceptance counts only if it is kept.
 */
import type { Client } from "./client.ts"
import type { Course } from "./deliveries.ts"
import { openAccount, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"
import { startRemote } from "./remote.ts"

export interface Accepts {
  readonly connections: number
  readonly perSecond: number
  readonly reconciliation: Reconciliation
}

const connections = 32
const warmUpSeconds = 3

export const measureAccepts = async (course: Course, seconds: number): Promise<Accepts> => {
  const databaseUrl = await course.databases.create("accepts")
  const api = await startPosthaste({ databaseUrl, roles: "api" })
  const account = await openAccount(api.url, course.sinkUrl)
  const client = startRemote<Client>("client.ts")
  const target = { url: api.url, account, bytes: course.bytes, connections }
  const warmUp = await client.ask("closedLoop", { ...target, seconds: warmUpSeconds })
  const accepted = await client.ask("closedLoop", { ...target, seconds })
  await client.stop()
  await api.stop()

  const ids = [...warmUp.ids, ...accepted.ids]
  await course.sink.ask("clear")
  const worker = await startPosthaste({ databaseUrl, roles: "worker" })
  await course.sink.ask("arrived", { count: ids.length, patienceMs: 20_000 })
  await worker.stop()
  const reconciliation = reconcile(ids, await course.sink.ask("report"))
  await course.databases.drop("accepts")
  return { connections, perSecond: (accepted.ids.length * 1000) / accepted.elapsedMs, reconciliation }
}
