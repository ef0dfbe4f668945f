/**
 * Publishes over one channel of a connection, and tells of each message what became of it. A message is written to the
 * broker once, persistent, and with a confirm; nothing is published again from here.
 *
 * The broker closes the channel over a message that it can't take at all, such as one to an exchange that does not
 * exist. So a publisher serves one exchange: what closes it concerns all its messages. A closed publisher stays closed.
 *
 * It knows no deadline. Whoever stops waiting for an answer can't know whether the message was taken.
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
  /** Nobody is bound for its routing key: the broker has dropped the message. */
  | { readonly type: "Returned"; readonly reason: string }
  /** The broker has not taken the message: a queue is full, or an error of its own. */
  | { readonly type: "Nacked" }
  /** The broker closed the channel and named the reason (`NOT_FOUND`, `ACCESS_REFUSED`, …), perhaps because of another message. */
  | { readonly type: "ChannelClosed"; readonly code: string; readonly reason: string }
  /** The channel or the connection ended before the confirm: the message may have been taken. */
  | { readonly type: "Lost" }

type Named = Envelope & { readonly messageId: string }

export interface Publisher {
  readonly publish: (envelope: Named, body: Buffer) => Effect.Effect<Published>
  /** In this order, all under way at once. */
  readonly publishAll: (messages: ReadonlyArray<readonly [Named, Buffer]>) => Effect.Effect<ReadonlyArray<Published>>
  /** False once the broker, or the connection, has closed the channel. */
  readonly isOpen: () => boolean
}

/** What the protocol's short strings can hold, in bytes; the client closes its channel over a longer one. */
export const SHORT_TEXT_MAX = 255
export const fitsShort = (text: string): boolean => Buffer.byteLength(text) <= SHORT_TEXT_MAX

/** Tells apart the tries of one message: a return names the message, and the try by this header. */
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
    // Only the first of the messages under way is told why the channel was closed, whichever was to blame.
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
    // A return comes before its confirm, and the client tells of it later: in the next turn of the event loop.
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

/** A channel that is closed with the scope. */
export const openChannel = (link: Link): Effect.Effect<Channel, NotConnected, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const channel = await link.connection.acquire({ emitErrorsFromChannel: true })
        // Why it was closed is told to whoever waits for an answer; nobody else has to hear it.
        channel.on("error", () => {})
        return channel
      },
      catch: (error) => new NotConnected({ code: "connection_failed", detail: String(error) })
    }),
    (channel) => Effect.promise(() => channel.close()).pipe(Effect.timeoutOption(CLOSE_WITHIN))
  )
