/**
 * (h) How fast one ordering key moves: each message waits for the answer to the one before, so what is measured is the way from
 * one settlement to the next request. Once with nothing else to be done, and once while ten thousand other keys of the same
 * destination move, which are given two thousand messages a second.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { query } from "./databases.ts"
import type { Course } from "./deliveries.ts"
import { fill, openAccount, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"

export interface Moved {
  /** First arrival to last, of the one key. */
  readonly perSecond: number
  readonly reconciliation: Reconciliation
}

export interface OneKey {
  readonly messages: number
  readonly others: number
  readonly alone: Moved
  readonly beside: Moved
}

/** One batch: it keeps its order. */
const messages = 1_000
const others = 10_000
const othersAtOnce = 1_000
const othersEveryMs = 500
const one = "one"
const endWithinMs = 60_000

export const measureOneKey = async (course: Course): Promise<OneKey> => ({
  messages,
  others,
  alone: await measure(course, false),
  beside: await measure(course, true)
})

const measure = async (course: Course, isBeside: boolean): Promise<Moved> => {
  const { bytes, sink } = course
  const databaseUrl = await course.databases.create("one_key")
  const posthaste = await startPosthaste({ databaseUrl })
  const account = await openAccount(posthaste.url, course.sinkUrl)
  await sink.ask("clear")
  const sent: Array<string> = []
  let given = 0
  const giveOthers = async (count: number) => {
    const from = given
    given += count
    const orderingKey = (n: number) => `other-${(from + n) % others}`
    sent.push(...(await fill(posthaste.url, { ...account, orderingKey }, { count, bytes })))
  }
  if (isBeside) await giveOthers(others)
  const ids = await fill(posthaste.url, { ...account, orderingKey: () => one }, { count: messages, bytes })
  sent.push(...ids)
  const giveUpAt = performance.now() + endWithinMs
  for (;;) {
    const inLine = `select count(*) as count from posthaste.line_entry where line = '${one}'`
    const [row] = await query<{ count: string }>(databaseUrl, inLine)
    if (Number(row!.count) === 0) break
    if (performance.now() > giveUpAt) throw new Error(`${row!.count} messages of one key still wait`)
    if (isBeside) await giveOthers(othersAtOnce)
    await sleep(isBeside ? othersEveryMs : 100)
  }
  await sink.ask("arrived", { count: sent.length, patienceMs: 20_000 })
  await posthaste.stop()
  const arrivals = await sink.ask("report")
  const ofOne = new Set(ids)
  const came = [...arrivals.firstArrivals].filter(([id]) => ofOne.has(id))
  if (came.some(([id], n) => id !== ids[n])) throw new Error("the messages of one key arrived out of order")
  await course.databases.drop("one_key")
  return {
    perSecond: ((messages - 1) * 1000) / (came.at(-1)![1] - came[0]![1]),
    reconciliation: reconcile(sent, arrivals)
  }
}
