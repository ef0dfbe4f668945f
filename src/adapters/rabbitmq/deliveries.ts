/**
 * Raw messages of a queue. The content type is hidden from the client, which would parse JSON and lose digits and
 * invalid bytes.
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
  /** In order, at least one; fails when there will be none. */
  readonly take: (max: number) => Effect.Effect<ReadonlyArray<Delivery>, NotConnected>
  /** Covers all before it. After a lost connection they come again. */
  readonly acknowledge: (last: Delivery) => Effect.Effect<void>
}

const CONTENT_TYPE = Symbol("content type")

interface HeaderFrame {
  readonly fields: Readonly<Record<string | symbol, unknown>>
}

/** Private parts of the client; test/end-to-end/amqpWindow.test.ts tells when a version lacks them. */
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
 * Pauses and resumes reading, so that messages stay with the broker by TCP. Heartbeats pause too: after about 20 s the
 * connection is lost and the messages come again.
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

interface Window {
  readonly count: number
  /** The last message may exceed it, as may bytes the socket has read. */
  readonly bytes: number
}

/** Needs its own connection, which is not read while the window is full. */
export const deliveriesOf = Effect.fnUntraced(function* (
  link: Link,
  queue: string,
  window: Window
): Effect.fn.Return<Deliveries, NotConnected, Scope.Scope> {
  const arrived = yield* Queue.unbounded<Delivery, Cause.Done>()
  const channel = yield* openChannel(link)
  keepBytes(channel)
  const valve = valveOf(link)
  const held: Array<{ readonly deliveryTag: number; readonly bytes: number }> = []
  let bytes = 0
  const end = () => Queue.endUnsafe(arrived)
  channel.on("close", end)
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
