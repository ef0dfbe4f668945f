/**
 * One connection to a RabbitMQ, from its login to its loss. A connection that is lost stays lost: whoever needs another
 * one asks for it, at a time of its own choosing, and declares again what it needs.
 *
 * The client notices a broker that went silent by its heartbeats, after some twenty seconds. Whoever waits for an
 * answer has a deadline of its own.
 */
import type { Socket } from "node:net"
import { Deferred, Duration, Effect, Exit, Redacted, Schema, type Scope } from "effect"
import { AMQPConnectionError, Connection, type ConnectionOptions } from "rabbitmq-client"
import { areUsedUp } from "../../channels/net/descriptors.ts"
import { boundSessions } from "../../channels/net/tlsTerms.ts"

/** Why there is no connection. The codes are those of domain/delivery/classify.ts. */
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
  /** For whoever runs Posthaste: it can name an address. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

export interface Link {
  readonly connection: Connection
  /** Why the broker takes no messages for now; null while it takes them. */
  readonly blocked: () => string | null
  readonly isLost: () => boolean
  /** Answers the reason once the connection is lost, also when it was closed here. */
  readonly lost: Effect.Effect<string>
}

export interface Options {
  /** `amqp://user:password@host:port/vhost`, or `amqps:`. */
  readonly url: Redacted.Redacted
  /** Shown in the broker's list of connections. */
  readonly name: string
  readonly timeout: Duration.Duration
  /** The largest frame, in bytes; headers must fit into one. Absent: the client's 8 KB. */
  readonly frameMax?: number
  /** Of the socket: which addresses may be connected to. */
  readonly socket?: ConnectionOptions["socket"]
  readonly tls?: ConnectionOptions["tls"]
  /** Nothing is consumed over it, so the broker has little to say: one that says more than this is cut off. */
  readonly answersMax?: AnswersMax
}

/** In bytes: so many in all, and so many more for each byte that it was told. */
export interface AnswersMax {
  readonly bytes: number
  readonly perByte: number
}

const HEARTBEAT_SECONDS = 10
/** How long a goodbye may take. */
const CLOSE_WITHIN = Duration.seconds(2)
/** No broker sends a larger frame before one was agreed on, nor is a larger one ever agreed on here. */
const ANY_FRAME_MAX = 1_048_576
/** The client would connect again by itself. It is closed when a connection fails, so this is never reached. */
const NEVER_AGAIN_MS = 2 ** 31 - 1

export const connect = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Link, NotConnected, Scope.Scope> {
  const lost = Deferred.makeUnsafe<string>()
  let blocked: string | null = null
  const connection = yield* Effect.acquireRelease(
    Effect.callback<Connection, NotConnected>((resume) => {
      const made = make(options)
      const { _socket: socket } = made as unknown as Connecting
      guardReads(socket, options.answersMax)
      boundSessions(socket)
      made.on("connection", () => resume(Effect.succeed(made)))
      made.on("connection.blocked", (reason: unknown) => {
        blocked = String(reason)
      })
      made.on("connection.unblocked", () => {
        blocked = null
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
  return {
    connection,
    blocked: () => blocked,
    isLost: () => Deferred.isDoneUnsafe(lost),
    lost: Deferred.await(lost)
  }
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

/** A private part of the client. */
interface Connecting {
  readonly _socket: Socket
}

/**
 * The client reads as many bytes as a frame says that it has. What answers may be no broker, and those bytes anything: Node
 * throws when they say a gigabyte, where nothing catches it, and the client would wait for, and keep, what is a little less. What
 * is returned is kept in memory too.
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

/** A URL without a user means the broker's guest, as it does for every client but this one. */
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
  // What judged the address has named the reason.
  if (code === "dns_failed" || code === "forbidden_address" || code === "no_descriptors")
    return new NotConnected({ code, detail })
  if (areUsedUp(error)) return new NotConnected({ code: "no_descriptors", detail })
  if (error instanceof AMQPConnectionError) {
    // NOT_ALLOWED: there is no such virtual host, or not for this user.
    if (code === "ACCESS_REFUSED" || code === "NOT_ALLOWED") return new NotConnected({ code: "login_refused", detail })
    if (code === "CONNECTION_TIMEOUT") return new NotConnected({ code: "timeout", detail })
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return new NotConnected({ code: "dns_failed", detail })
  return new NotConnected({ code: /CERT|TLS|SSL|SELF_SIGNED/.test(code) ? "tls_failed" : "connection_failed", detail })
}
