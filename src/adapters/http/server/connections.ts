/**
 * The bounds of a server's connections, beside those that Node has: so many of one address, and so many requests of a connection that
 * wait for their answers. And the stop of a server, which waits for requests under way and for nothing else.
 */
import { IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { networkOfCaller } from "./callers.ts"
import { refuseNotHttp } from "./refuseNotHttp.ts"

const seconds = (count: number) => count * 1000

export interface ConnectionLimits {
  /** Of all callers together. */
  readonly connectionsMax: number
  /** Of one address; a proxy of the operator's may have as many as there are. */
  readonly perAddressMax: number
  /** For a handshake, and for the headers of a request. */
  readonly headersWithinMs: number
  /** For a whole request. */
  readonly requestWithinMs: number
  /** A connection is kept for so long without a request. */
  readonly idleMs: number
  /** A connection with a request is kept for so long without a byte in either direction. */
  readonly silentMs: number
  readonly isProxy: (address: string) => boolean
  /** Requests that a caller may send on one connection before it has their answers. One more closes it. */
  readonly underWayMax: number
}

export const limitsDefault: ConnectionLimits = {
  connectionsMax: 4_000,
  perAddressMax: 1_000,
  headersWithinMs: seconds(10),
  requestWithinMs: seconds(30),
  // Longer than the usual idle time of a proxy in front, so that the proxy closes first.
  idleMs: seconds(65),
  silentMs: seconds(60),
  isProxy: () => false,
  underWayMax: 16
}

/** Connections that have as many requests under way as they may. */
const fullConnections = new WeakSet<Socket>()

/**
 * A request on a connection that may be full. Node's parser reads all requests of a piece at once, some two thousand in 64 KiB, and
 * makes a request and a response of each; afterwards it is too late to close the connection. It stops at a request for an upgrade. So
 * the request that is one too many looks like that.
 */
export class CountedRequest extends IncomingMessage {
  private asksUpgrade: unknown
  readonly isTooMany: boolean

  constructor(socket: Socket) {
    super(socket)
    this.isTooMany = fullConnections.has(socket)
  }

  get upgrade(): unknown {
    return this.isTooMany || this.asksUpgrade
  }

  set upgrade(asks: unknown) {
    this.asksUpgrade = asks
  }
}

/** How long a stop waits for requests under way. Appends take milliseconds; a slow caller could take for ever. */
const STOP_MAX_MS = 10_000

/** Answers that never end by themselves. A stop ends them: subscribers reconnect with the last id they saw. */
export const endless = new WeakSet<ServerResponse>()

/** Calls `enter` with each request; `begin` lets the server's listeners hear it. */
export const watchConnections = (
  server: Server,
  { connectionsMax, perAddressMax, silentMs, isProxy, underWayMax }: ConnectionLimits,
  enter: (request: IncomingMessage, response: ServerResponse, begin: () => void) => void
): void => {
  const perAddress = new Map<string, number>()
  const underWay = new Map<Socket, Set<ServerResponse>>()

  const count = (address: string, change: 1 | -1) => {
    const own = (perAddress.get(address) ?? 0) + change
    if (own === 0) perAddress.delete(address)
    else perAddress.set(address, own)
  }

  const underWayOn = (socket: Socket): Set<ServerResponse> => {
    const known = underWay.get(socket)
    if (known !== undefined) return known
    const own = new Set<ServerResponse>()
    underWay.set(socket, own)
    socket.once("close", () => {
      underWay.delete(socket)
      // Node ends those behind the first only where it was the parser that read the connection's end.
      for (const response of own) response.destroy()
    })
    return own
  }

  const follow = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    const own = underWayOn(socket)
    own.add(response)
    if (own.size >= underWayMax) fullConnections.add(socket)
    response.on("close", () => {
      own.delete(response)
      fullConnections.delete(socket)
    })
    enter(request, response, () => emit("request", request, response))
  }

  /** A refusal must not be taken for the answer to another request, or for a part of it. */
  const hearsRefusal = (socket: Socket): boolean => {
    const [first, second] = underWay.get(socket) ?? []
    return first === undefined || (second === undefined && !first.headersSent && !first.req.complete)
  }

  server.maxConnections = connectionsMax
  server.timeout = silentMs
  server.on("connection", (socket) => {
    const { remoteAddress } = socket
    // It is gone already.
    if (remoteAddress === undefined) return socket.destroy()
    const address = networkOfCaller(remoteAddress)
    if ((perAddress.get(address) ?? 0) >= perAddressMax && !isProxy(remoteAddress)) return socket.destroy()
    count(address, 1)
    socket.once("close", () => count(address, -1))
  })
  server.on("clientError", (error, socket) => refuseNotHttp(error, socket as Socket, hearsRefusal(socket as Socket)))

  const emit = server.emit.bind(server) as (event: string, ...given: ReadonlyArray<unknown>) => boolean
  server.emit = (event: string, ...given: ReadonlyArray<unknown>): boolean => {
    const [request, response] = given as [IncomingMessage, ServerResponse]
    if (event === "request") follow(request, response)
    else if (event === "checkContinue") {
      response.writeContinue()
      follow(request, response)
    } else if (event === "upgrade") request.socket.destroy()
    else return emit(event, ...given)
    return true
  }

  // Node's own `close` lets connections that were busy at that moment stay in keep-alive afterwards, and watches for slow requests no more.
  const close = server.close.bind(server)
  server.close = (callback) => {
    close(callback)
    for (const own of underWay.values()) for (const response of own) if (endless.has(response)) response.destroy()
    const since = performance.now()
    const sweep = setInterval(() => {
      const isDone = [...underWay.values()].every(({ size }) => size === 0)
      if (isDone || performance.now() - since > STOP_MAX_MS) server.closeAllConnections()
      else server.closeIdleConnections()
    }, 20)
    server.once("close", () => clearInterval(sweep))
    return server
  }
}
