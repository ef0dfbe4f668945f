/** One connection to a RabbitMQ from login to loss. Heartbeats notice a silent broker after about 20 s. */
import type { Socket } from "node:net"
import { Deferred, Duration, Effect, Exit, Redacted, Schema, type Scope } from "effect"
import { AMQPConnectionError, Connection, type ConnectionOptions } from "rabbitmq-client"
import { areUsedUp, boundSessions } from "../../channels/net/sockets.ts"

/** Codes as in domain/delivery/classify.ts. */
export class NotConnected extends Schema.TaggedError<NotConnected>()("NotConnected", {
  code: Schema.Literals([
    "connection_failed",
    "dns_failed",
    "forbidden_address",
    "login_refused",
    "no_descriptors",
    "timeout",
    "tls_failed"
  ]),
  /** For the operator: may name an address. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface Link {
  readonly connection: Connection
  /** True while the broker takes no messages. */
  readonly isBlocked: () => boolean
  /** Answers the reason once the connection is lost or closed. */
  readonly lost: Effect.Effect<string>
}

interface Options {
  readonly url: Redacted.Redacted
  readonly name: string
  readonly timeout: Duration.Duration
  /** In bytes; headers must fit into one frame. Default: 8 KB. */
  readonly frameMax?: number
  readonly socket?: ConnectionOptions["socket"]
  readonly tls?: ConnectionOptions["tls"]
  /** Set where nothing is consumed: a broker that sends more is cut off. */
  readonly answersMax?: AnswersMax
}

/** Bytes allowed in all, plus `perByte` for each byte written. */
interface AnswersMax {
  readonly bytes: number
  readonly perByte: number
}

const HEARTBEAT_SECONDS = 10
const CLOSE_WITHIN = Duration.seconds(2)
/** The largest frame before and after negotiation. */
const ANY_FRAME_MAX = 1_048_576
/** Keeps the client from reconnecting; it is closed when a connection fails. */
const NEVER_AGAIN_MS = 2 ** 31 - 1

export const connect = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Link, NotConnected, Scope.Scope> {
  const lost = Deferred.makeUnsafe<string>()
  let isBlocked = false
  const connection = yield* Effect.acquireRelease(
    Effect.callback<Connection, NotConnected>((resume) => {
      const made = make(options)
      const { _socket: socket } = made as unknown as Connecting
      guardReads(socket, options.answersMax)
      boundSessions(socket)
      made.on("connection", () => resume(Effect.succeed(made)))
      made.on("connection.blocked", () => {
        isBlocked = true
      })
      made.on("connection.unblocked", () => {
        isBlocked = false
      })
      made.on("error", (error: unknown) => {
        made.unsafeDestroy()
        Deferred.doneUnsafe(lost, Exit.succeed(textOf(error)))
        resume(Effect.fail(notConnected(error)))
      })
    }),
    (made) =>
      Effect.tryPromise(() => made.close()).pipe(
        Effect.timeoutOption(CLOSE_WITHIN),
        Effect.ignore,
        Effect.andThen(
          Effect.sync(() => {
            made.unsafeDestroy()
            Deferred.doneUnsafe(lost, Exit.succeed("closed here"))
          })
        )
      )
  )
  return { connection, isBlocked: () => isBlocked, lost: Deferred.await(lost) }
})

const make = ({ url, name, timeout, frameMax, socket, tls }: Options): Connection =>
  new Connection({
    url: withLogin(Redacted.value(url)),
    connectionName: name,
    connectionTimeout: Duration.toMillis(timeout),
    acquireTimeout: Duration.toMillis(timeout),
    heartbeat: HEARTBEAT_SECONDS,
    noDelay: true,
    retryLow: NEVER_AGAIN_MS,
    retryHigh: NEVER_AGAIN_MS,
    ...(frameMax && { frameMax }),
    ...(socket && { socket }),
    ...(tls && { tls })
  })

interface Connecting {
  readonly _socket: Socket
}

/**
 * The client buffers as many bytes as a frame announces, and Node throws uncaught at a gigabyte: a server that is no
 * broker may announce anything. Returned messages are kept in memory too.
 */
const guardReads = (socket: Socket, answersMax: AnswersMax | undefined): void => {
  const read = socket.read.bind(socket)
  socket.read = (size) => {
    const isTooMuch =
      answersMax !== undefined && socket.bytesRead > answersMax.bytes + answersMax.perByte * socket.bytesWritten
    if (isTooMuch || (size !== undefined && size > ANY_FRAME_MAX)) {
      socket.destroy(new Error("what answered does not speak AMQP as a broker does"))
      return null
    }
    return read(size)
  }
}

/** Other clients default to guest; this one does not. */
const withLogin = (text: string): string => {
  const url = new URL(text)
  if (url.username === "" && url.password === "") {
    url.username = "guest"
    url.password = "guest"
  }
  return url.href
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error ? String(error.code) : ""

const notConnected = (error: unknown): NotConnected => {
  const code = codeOf(error)
  const detail = textOf(error)
  if (code === "dns_failed" || code === "forbidden_address" || code === "no_descriptors")
    return new NotConnected({ code, detail })
  if (areUsedUp(error)) return new NotConnected({ code: "no_descriptors", detail })
  if (error instanceof AMQPConnectionError) {
    // NOT_ALLOWED: no such virtual host for this user.
    if (code === "ACCESS_REFUSED" || code === "NOT_ALLOWED") return new NotConnected({ code: "login_refused", detail })
    if (code === "CONNECTION_TIMEOUT") return new NotConnected({ code: "timeout", detail })
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return new NotConnected({ code: "dns_failed", detail })
  return new NotConnected({ code: /CERT|TLS|SSL|SELF_SIGNED/.test(code) ? "tls_failed" : "connection_failed", detail })
}
