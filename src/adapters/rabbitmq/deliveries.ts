/**
 * The messages of a queue as they came. The client reads a body that is called JSON or text, and what it hands over has
 * lost the digits of its numbers and the bytes that were wrong. So the content type is put aside before the client sees
 * it, and the body stays bytes.
 */
import type { Socket } from "node:net"
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

/** Parts of the client that are not for us: test/end-to-end/amqpWindow.test.ts tells when another version has none. */
interface ClientChannel {
  _onHeader: (frame: HeaderFrame) => void
}
interface ClientConnection {
  readonly _socket: Socket
}

const keepBytes = (channel: Channel) => {
  const inner = channel as unknown as ClientChannel
  const onHeader = inner._onHeader.bind(channel)
  inner._onHeader = (frame) => {
    const { contentType, ...fields } = frame.fields
    onHeader({ ...frame, fields: { ...fields, [CONTENT_TYPE]: contentType } })
  }
}

/**
 * Stops reading what the broker sends, and reads on. What is not read stays with the broker, by TCP. Heartbeats are not read
 * either: after some twenty seconds the connection is lost, and the broker gives the same messages again.
 */
const valveOf = ({ connection }: Link) => {
  const socket = (connection as unknown as ClientConnection)._socket
  const read = socket.read.bind(socket)
  let isShut = false
  socket.read = (size) => (isShut ? null : read(size))
  return {
    shut: () => {
      isShut = true
    },
    open: () => {
      if (!isShut) return
      isShut = false
      socket.emit("readable")
    }
  }
}

/** How much may be here at once without being acknowledged. */
export interface Window {
  /** How many. */
  readonly count: number
  /**
   * Bytes of their bodies, which the broker knows no bound of. The last one may exceed them, and what the socket had read
   * already comes on top.
   */
  readonly bytes: number
}

/** The connection is used for nothing else, because nothing is read from it while the window is full. */
export const deliveriesOf = Effect.fnUntraced(function* (
  link: Link,
  queue: string,
  window: Window
): Effect.fn.Return<Deliveries, NotConnected, Scope.Scope> {
  const arrived = yield* Queue.unbounded<Delivery, Cause.Done>()
  const channel = yield* openChannel(link)
  keepBytes(channel)
  const valve = valveOf(link)
  /** What is not acknowledged, oldest first. */
  const held: Array<{ readonly deliveryTag: number; readonly bytes: number }> = []
  let bytes = 0
  const end = () => Queue.endUnsafe(arrived)
  channel.on("close", end)
  // Somebody deleted the queue.
  channel.on("basic.cancel", end)
  yield* Effect.tryPromise({
    try: async () => {
      await channel.basicQos({ prefetchCount: window.count })
      await channel.basicConsume({ queue }, (message) => {
        const { [CONTENT_TYPE]: contentType, ...rest } = message as AsyncMessage & { [CONTENT_TYPE]?: string }
        const delivery = { ...rest, contentType } as Delivery
        held.push({ deliveryTag: delivery.deliveryTag, bytes: delivery.body.length })
        bytes += delivery.body.length
        if (bytes >= window.bytes) valve.shut()
        Queue.offerUnsafe(arrived, delivery)
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
        while (held.length > 0 && held[0]!.deliveryTag <= deliveryTag) bytes -= held.shift()!.bytes
        if (bytes < window.bytes) valve.open()
      })
  }
})
