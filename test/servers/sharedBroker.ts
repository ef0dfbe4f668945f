/** One RabbitMQ for the tests of a file, and a client that is no part of Posthaste. */
import { Effect, Exit, Scope } from "effect"
import { type AsyncMessage, Connection } from "rabbitmq-client"
import { afterAll, beforeAll } from "vitest"
import { type RabbitMQ, rabbitmq } from "./rabbitmq.ts"

export interface SharedBroker {
  readonly rabbitmq: RabbitMQ
  readonly client: Connection
}

/** It is there while the tests run. */
export const sharedBroker = (): SharedBroker => {
  const scope = Scope.makeUnsafe()
  let broker: RabbitMQ
  let client: Connection
  beforeAll(async () => {
    broker = await Effect.runPromise(Scope.provide(rabbitmq, scope))
    client = await clientOf(broker.url)
  })
  afterAll(async () => {
    client?.unsafeDestroy()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  return {
    get rabbitmq() {
      return broker
    },
    get client() {
      return client
    }
  }
}

/** It connects again by itself. */
export const clientOf = async (url: string): Promise<Connection> => {
  const client = new Connection({
    url,
    retryLow: 50,
    retryHigh: 200,
    connectionTimeout: 60_000,
    acquireTimeout: 60_000
  })
  client.on("error", () => {})
  await client.onConnect(60_000)
  return client
}

/** Messages that lie in a queue, oldest first; they are taken out of it. */
export const messagesIn = async (client: Connection, queue: string): Promise<ReadonlyArray<AsyncMessage>> => {
  const found = []
  for (;;) {
    const message = await client.basicGet({ queue, noAck: true })
    if (message === undefined) return found as unknown as ReadonlyArray<AsyncMessage>
    found.push(message)
  }
}
