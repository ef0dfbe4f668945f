/** Sagas of five steps, each with an effect in a table of the user's, and clients that die in the middle of them. */
import type pg from "pg"
import { databaseOf } from "../../../sdk/src/database.ts"
import { AbortSaga, saga } from "../../../sdk/src/saga.ts"

export const workTable = `create table work (
  order_id text not null, note text not null, at bigint generated always as identity)`

export interface Order {
  readonly order: string
}

/** An effect: a row that a unique key does not keep from being there twice. */
export const executed = (transaction: unknown, order: string, note: string) =>
  databaseOf(transaction).run("insert into work (order_id, note) values ($1::text, $2::text)", [order, note])

const action =
  (note: string) =>
  async (transaction: unknown, { order }: Order) => {
    await executed(transaction, order, note)
    return `${note} done`
  }
const compensate =
  (note: string) =>
  (transaction: unknown, { order }: Order) =>
    executed(transaction, order, `not ${note}`)
const event = (eventType: string) => ({ eventType, data: { of: eventType } })
const message = { channel: "webhook", to: "somewhere", payloadJson: {} }

export const fiveSteps = saga<Order>("order", { org: "acme" })
  .step("one", { action: action("one"), event: event("one.done") })
  .step("two", { action: action("two"), event: (_, result) => ({ ...event("two.done"), data: result }) })
  .step("three", { action: action("three") })
  .step("four", { action: action("four"), event: message })
  .step("five", { action: action("five"), event: event("five.done") })

export const longRunning = () =>
  saga<Order>("order", { org: "acme" })
    .step("one", { action: action("one"), event: event("one.done"), compensate: compensate("one") })
    .step("two", { action: action("two"), event: event("two.done"), compensate: compensate("two") })
    .step("three", {
      waitsFor: ["paid", "refused"],
      action: async (transaction, { order }, { event }) => {
        const { name, data } = event!
        if (name === "refused") throw new AbortSaga("the payment was refused")
        await executed(transaction, order, "three")
        return `three by ${name} ${(data as { amount: number }).amount}`
      },
      compensate: compensate("three")
    })
    .step("four", { action: action("four"), event: message, compensate: compensate("four") })
    .step("five", { action: action("five"), event: event("five.done"), compensate: compensate("five") })

/** The client, until its nth statement. Then it dies: before the statement is sent, or when it is done and nobody has heard. */
export const dyingAt = (client: pg.PoolClient, n: number, when: "before" | "after"): pg.PoolClient => {
  let statements = 0
  const die = () => {
    throw new Error(`died ${when} statement ${n}`)
  }
  return {
    getTransactionStatus: () => client.getTransactionStatus(),
    query: async (text: string, values?: Array<unknown>) => {
      statements++
      if (statements > n || (statements === n && when === "before")) die()
      const answer = await client.query(text, values)
      if (statements === n) die()
      return answer
    }
  } as unknown as pg.PoolClient
}
