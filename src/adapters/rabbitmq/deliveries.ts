/**
 * The messages of a queue as they came. The client reads a body that is called JSON or text, and what it hands over has
 * lost the digits of its numbers and the bytes that were wrong. So the content type is put aside before the client sees
 * it, and the body stays bytes.
 */
import { type Cause, Effect, Queue, type Scope } from "effect"
import type { AsyncMessage, Channel } from "rabbitmq-client"
import { type Link, NotConnected } from "./client/connect.ts"
import { openChannel } from "./client/publisher.ts"

export interface Delivery extends Omit<AsyncMessage, "body" | "contentType"> {
  readonly contentType: string | undefined
  readonly body: Buffer
}

export interface Deliveries {
  /** The next ones in their order, at least one; fails once no more will come. */
  readonly take: (max: number) => Effect.Effect<ReadonlyArray<Delivery>, NotConnected>
  /** Of this delivery and all before it. Lost with the connection: they come again then. */
  readonly acknowledge: (last: Delivery) => Effect.Effect<void>
}

const CONTENT_TYPE = Symbol("content type")

interface HeaderFrame {
  readonly fields: Readonly<Record<string | symbol, unknown>>
}

/** A part of the client that is not for us: deliveries.test.ts tells when another version has none. */
const keepBytes = (channel: Channel) => {
  const inner = channel as unknown as { _onHeader: (frame: HeaderFrame) => void }
  const onHeader = inner._onHeader.bind(channel)
  inner._onHeader = (frame) => {
    const { contentType, ...fields } = frame.fields
    onHeader({ ...frame, fields: { ...fields, [CONTENT_TYPE]: contentType } })
  }
}

/** `prefetch` of them may be here at once without being acknowledged. */
export const deliveriesOf = Effect.fnUntraced(function* (
  link: Link,
  queue: string,
  prefetch: number
): Effect.fn.Return<Deliveries, NotConnected, Scope.Scope> {
  const arrived = yield* Queue.unbounded<Delivery, Cause.Done>()
  const channel = yield* openChannel(link)
  keepBytes(channel)
  const end = () => Queue.endUnsafe(arrived)
  channel.on("close", end)
  // Somebody deleted the queue.
  channel.on("basic.cancel", end)
  yield* Effect.tryPromise({
    try: async () => {
      await channel.basicQos({ prefetchCount: prefetch })
      await channel.basicConsume({ queue }, (message) => {
        const { [CONTENT_TYPE]: contentType, ...rest } = message as AsyncMessage & { [CONTENT_TYPE]?: string }
        Queue.offerUnsafe(arrived, { ...rest, contentType } as Delivery)
      })
    },
    catch: (error) => new NotConnected({ code: "connection_failed", detail: String(error) })
  })
  return {
    take: (max) =>
      Effect.mapError(
        Queue.takeBetween(arrived, 1, max),
        () => new NotConnected({ code: "connection_failed", detail: `the queue ${queue} gives no more` })
      ),
    acknowledge: ({ deliveryTag }) =>
      Effect.sync(() => {
        if (channel.active) channel.basicAck({ deliveryTag, multiple: true })
      })
  }
})
