/**
 * The bounds of a server's connections beyond Node's own (connections of one address, requests of a connection that
 * wait for answers), and the stop of a server, which waits for nothing but requests under way.
 */
import { IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { networkOfCaller } from "./callers.ts"
import { refuseNotHttp } from "./refuseNotHttp.ts"

const seconds = (count: number) => count * 1000

export interface ConnectionLimits {
  readonly connectionsMax: number
  /** Of one address; the operator's proxies have no such bound. */
  readonly perAddressMax: number
  /** For a handshake and the headers. */
  readonly headersWithinMs: number
  readonly requestWithinMs: number
  /** Closes a connection without a request after this time. */
  readonly idleMs: number
  /** Closes a connection with a request after this time without a byte. */
  readonly silentMs: number
  readonly isProxy: (address: string) => boolean
  /** Unanswered requests on one connection; one more closes it. */
  readonly underWayMax: number
}

export const limitsDefault: ConnectionLimits = {
  connectionsMax: 4_000,
  perAddressMax: 1_000,
  headersWithinMs: seconds(10),
  requestWithinMs: seconds(30),
  // Longer than the usual idle time of a proxy, so that the proxy closes first.
  idleMs: seconds(65),
  silentMs: seconds(60),
  isProxy: () => false,
  underWayMax: 16
}

const fullConnections = new WeakSet<Socket>()

/**
 * Node's parser makes a request and a response of each of some two thousand requests in 64 KiB before the connection
 * can be closed. It stops at a request for an upgrade, so the request beyond the bound looks like one.
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

/** The longest wait of a stop for requests under way. */
const STOP_MAX_MS = 10_000

/** Answers without end. A stop ends them: subscribers reconnect with the last id they saw. */
export const endless = new WeakSet<ServerResponse>()

/** Calls `enter` with each request; `begin` passes it to the server's listeners. */
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
      // Node ends the later ones only where its parser read the end of the connection.
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

  /** False where a refusal could be taken for the answer to another request. */
  const hearsRefusal = (socket: Socket): boolean => {
    const [first, second] = underWay.get(socket) ?? []
    return first === undefined || (second === undefined && !first.headersSent && !first.req.complete)
  }

  server.maxConnections = connectionsMax
  server.timeout = silentMs
  server.on("connection", (socket) => {
    const { remoteAddress } = socket
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

  // Node's `close` keeps connections that were busy alive afterwards, and no longer looks for slow requests.
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
