/**
 * (h) How fast one ordering key moves when nothing else is to be done: each message waits for the answer to the one before,
 * so what is measured is the way from one settlement to the next request.
 */
import type { Course } from "./deliveries.ts"
import { fill, openAccount, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"

export interface OneKey {
  readonly messages: number
  /** First arrival to last. */
  readonly perSecond: number
  readonly reconciliation: Reconciliation
}

/** One batch: it keeps its order. */
const messages = 1_000

export const measureOneKey = async (course: Course): Promise<OneKey> => {
  const databaseUrl = await course.databases.create("one_key")
  const posthaste = await startPosthaste({ databaseUrl })
  const account = await openAccount(posthaste.url, course.sinkUrl)
  await course.sink.ask("clear")
  const ids = await fill(posthaste.url, { ...account, orderingKey: "one" }, { count: messages, bytes: course.bytes })
  await course.sink.ask("arrived", { count: messages, patienceMs: 20_000 })
  await posthaste.stop()
  const arrivals = await course.sink.ask("report")
  const came = [...arrivals.firstArrivals.keys()]
  if (came.some((id, n) => id !== ids[n])) throw new Error("the messages of one key arrived out of order")
  await course.databases.drop("one_key")
  return {
    messages,
    perSecond: ((messages - 1) * 1000) / (arrivals.lastAt - arrivals.firstAt),
    reconciliation: reconcile(ids, arrivals)
  }
}
