import { it } from "@effect/vitest"
import { Effect } from "effect"
import { Connection } from "rabbitmq-client"
import { describe, expect } from "vitest"
import { rabbitmq } from "./rabbitmq.ts"
import { until } from "./until.ts"

const connected = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const connection = new Connection({ url, connectionTimeout: 60_000, retryLow: 50, retryHigh: 200 })
      // Its end is the test's doing; it connects again by itself.
      connection.on("error", () => {})
      await connection.onConnect(60_000)
      return connection
    }),
    (connection) => Effect.promise(() => connection.close())
  )

describe("the RabbitMQ of tests", () => {
  it.live("keeps a quorum queue and what was confirmed in it over a SIGKILL", () =>
    Effect.gen(function* () {
      const broker = yield* rabbitmq
      yield* Effect.promise(async () => {
        const before = new Connection(broker.url)
        before.on("error", () => {})
        await before.queueDeclare({ queue: "orders", durable: true, arguments: { "x-queue-type": "quorum" } })
        await before.close()
        await broker.settle()
      })
      const connection = yield* connected(broker.url)
      yield* Effect.promise(async () => {
        const publisher = connection.createPublisher({ confirm: true })
        await publisher.send({ routingKey: "orders", durable: true }, "the first")
        await broker.kill()
        await broker.start()
        await connection.onConnect(60_000)
        await until(
          "the message comes back",
          async () =>
            (await connection.basicGet({ queue: "orders", noAck: true }).catch(() => null))?.body === "the first",
          60_000
        )
      })
    })
  )

  it.live("blocks publishers while an alarm is raised, stops and starts its application, and cuts clients off", () =>
    Effect.gen(function* () {
      const broker = yield* rabbitmq
      const connection = yield* connected(broker.url)
      let [blocked, ends] = [false, 0]
      connection.on("connection.blocked", () => (blocked = true))
      connection.on("connection.unblocked", () => (blocked = false))
      connection.on("error", () => (ends += 1))
      yield* Effect.promise(async () => {
        const publish = () => connection.createPublisher().send("nowhere", "a message")
        await broker.raiseAlarm()
        await publish()
        await until("the connection is blocked", () => blocked)
        await broker.clearAlarm()
        await until("the connection is free again", () => !blocked)

        await broker.stopApp()
        await until("the connection has ended", () => ends > 0)
        expect(connection.ready).toBe(false)
        await broker.startApp()
        await connection.onConnect(60_000)

        const cut = ends
        await broker.closeConnections()
        await until("the connection was cut", () => ends > cut)
        await connection.onConnect(60_000)
      })
    })
  )
})
