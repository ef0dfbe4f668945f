/**
 * Publishes over one channel and reports on each message, written once. The broker closes the channel over a message it
 * can't take, such as one to a missing exchange, so a publisher serves one exchange.
 */
import { setImmediate } from "node:timers/promises"
import { Duration, Effect, type Scope } from "effect"
import {
  AMQPChannelError,
  AMQPConnectionError,
  AMQPError,
  type Channel,
  type Envelope,
  type ReturnedMessage
} from "rabbitmq-client"
import { type Link, NotConnected } from "./connect.ts"

export type Published =
  | { readonly type: "Confirmed" }
  /** No queue is bound for its routing key. */
  | { readonly type: "Returned"; readonly reason: string }
  /** A full queue, or an error of the broker. */
  | { readonly type: "Nacked" }
  /** Code such as `NOT_FOUND` or `ACCESS_REFUSED`, perhaps due to another message. */
  | { readonly type: "ChannelClosed"; readonly code: string; readonly reason: string }
  /** Ended before the confirm: the message may have been taken. */
  | { readonly type: "Lost" }

type Named = Envelope & { readonly messageId: string }

export interface Publisher {
  readonly publish: (envelope: Named, body: Buffer) => Effect.Effect<Published>
  /** In order, all under way at once. */
  readonly publishAll: (messages: ReadonlyArray<readonly [Named, Buffer]>) => Effect.Effect<ReadonlyArray<Published>>
  readonly isOpen: () => boolean
}

/** Longest short string of AMQP in bytes; the client closes its channel over more. */
const SHORT_TEXT_MAX = 255
export const fitsShort = (text: string): boolean => Buffer.byteLength(text) <= SHORT_TEXT_MAX

/** A return names only the message; this header names the try. */
export const TRY_HEADER = "x-try"

const CLOSE_WITHIN = Duration.seconds(1)

export const publisher = Effect.fnUntraced(function* (
  link: Link
): Effect.fn.Return<Publisher, NotConnected, Scope.Scope> {
  const returned = new Map<string, string>()
  let closedBy: { readonly code: string; readonly reason: string } | null = null
  const channel = yield* openChannel(link)
  yield* Effect.tryPromise({
    try: () => channel.confirmSelect(),
    catch: (error) => new NotConnected({ code: "connection_failed", detail: String(error) })
  })
  channel.on("basic.return", (message: ReturnedMessage) => {
    returned.set(nameOf(message), `${message.replyText} (${message.replyCode})`)
  })

  const failed = (error: unknown): Published => {
    if (!(error instanceof AMQPError)) return { type: "Lost" }
    if (error.code === "NACK") return { type: "Nacked" }
    // The client tells the reason to the first message under way only, whichever is to blame.
    if (error.code !== "CH_CLOSE" && error instanceof AMQPChannelError && !(error instanceof AMQPConnectionError)) {
      closedBy = { code: error.code, reason: error.message }
    }
    return closedBy === null ? { type: "Lost" } : { type: "ChannelClosed", ...closedBy }
  }

  const publish = async (envelope: Named, body: Buffer): Promise<Published> => {
    const name = nameOf(envelope)
    try {
      await channel.basicPublish({ ...envelope, durable: true }, body)
    } catch (error) {
      return failed(error)
    }
    // A return precedes its confirm, but the client reports it one turn of the event loop later.
    if (envelope.mandatory) await setImmediate()
    const reason = returned.get(name)
    if (reason === undefined) return { type: "Confirmed" }
    returned.delete(name)
    return { type: "Returned", reason }
  }

  return {
    publish: (envelope, body) => Effect.promise(() => publish(envelope, body)),
    publishAll: (messages) =>
      Effect.promise(() => Promise.all(messages.map(([envelope, body]) => publish(envelope, body)))),
    isOpen: () => channel.active
  }
})

const nameOf = ({ messageId, headers }: Envelope | ReturnedMessage): string =>
  JSON.stringify([messageId, headers?.[TRY_HEADER]])

export const openChannel = (link: Link): Effect.Effect<Channel, NotConnected, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const channel = await link.connection.acquire({ emitErrorsFromChannel: true })
        channel.on("error", () => {})
        return channel
      },
      catch: (error) => new NotConnected({ code: "connection_failed", detail: String(error) })
    }),
    (channel) => Effect.promise(() => channel.close()).pipe(Effect.timeoutOption(CLOSE_WITHIN))
  )
