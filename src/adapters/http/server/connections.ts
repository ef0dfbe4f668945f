/**
 * The listening socket and its limits. Whoever is slow, silent or many is disconnected before it costs others anything, and a
 * request that Node's parser refuses gets a problem of the same form as every other refusal.
 *
 * A connection is always in one state (`State`). When there are too many, of one address or in all, one makes room: first
 * those that have never asked anything, then those that ask nothing now, then those that do not finish sending their request, then
 * those that do not read their answer. A connection whose request is being worked on is never taken for another.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES
} from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { Socket } from "node:net"
import { Redacted } from "effect"
import { pageHeaders, SafeResponse } from "./securityHeaders.ts"

const seconds = (count: number) => count * 1000

export interface ConnectionLimits {
  /** Of all callers together. */
  readonly connectionsMax: number
  /** Of one address; a proxy of the operator's may have as many as there are. */
  readonly perAddressMax: number
  /** How long an answer may wait for its reader. */
  readonly answerReadWithinMs: number
  readonly isProxy: (address: string) => boolean
  /**
   * How many connections of one address make room for its next ones, in a second; of all addresses together ten times as many. Beyond,
   * new ones are closed before anything is made for them: who opens thousands has a small part of the loop for it.
   */
  readonly roomPerSecondMax: number
  /** In milliseconds. */
  readonly now: () => number
}

export const limitsDefault: ConnectionLimits = {
  connectionsMax: 4_000,
  perAddressMax: 1_000,
  answerReadWithinMs: seconds(30),
  isProxy: () => false,
  roomPerSecondMax: 50,
  now: () => performance.now()
}

const statusOf = (code: string | undefined): number => {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return 431
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return 408
    default:
      return 400
  }
}

const refuse = (error: NodeJS.ErrnoException, socket: Socket): void => {
  // Only to what Node's parser and its clocks refuse: a connection that broke, or whose TLS failed, hears nothing.
  if (!/^(?:HPE|ERR_HTTP)_/.test(error.code ?? "") || !socket.writable) {
    socket.destroy()
    return
  }
  const status = statusOf(error.code)
  const title = STATUS_CODES[status]!
  const body = JSON.stringify({
    type: "urn:posthaste:problem:not-http",
    title,
    status,
    detail: "The request could not be read as HTTP/1.1.",
    errors: []
  })
  const headers = {
    ...pageHeaders,
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(body),
    connection: "close"
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end([`HTTP/1.1 ${status} ${title}`, ...lines, "", body].join("\r\n"))
}

/** How long a stop waits for requests under way. Appends take milliseconds; a slow caller could take for ever. */
const STOP_MAX = seconds(10)

/** Answers that never end by themselves. A stop ends them: subscribers reconnect with the last id they saw. */
export const endless = new WeakSet<ServerResponse>()

/** What a connection does now, in the order in which connections make room for others. */
const states = ["fresh", "idle", "arriving", "unread", "working"] as const
type State = (typeof states)[number]

/** Connections by their state; in each state, the one that has been in it for longest comes first. */
class Pool {
  readonly byState: Readonly<Record<State, Set<Connection>>> = {
    fresh: new Set(),
    idle: new Set(),
    arriving: new Set(),
    unread: new Set(),
    working: new Set()
  }
  count = 0
  /** Those that made room since then. */
  private madeRoom = { since: Number.NEGATIVE_INFINITY, count: 0 }

  /** One makes room at `now`. */
  makesRoom(now: number): void {
    if (now - this.madeRoom.since >= 1_000) this.madeRoom = { since: now, count: 0 }
    this.madeRoom.count += 1
  }

  mayMakeRoom(now: number, perSecondMax: number): boolean {
    return now - this.madeRoom.since >= 1_000 || this.madeRoom.count < perSecondMax
  }

  /** Null when all of them are being worked for. */
  leastNeeded(): Connection | null {
    for (const state of states) {
      if (state === "working") return null
      const [first] = this.byState[state]
      if (first !== undefined) return first
    }
    return null
  }
}

interface Connection {
  readonly socket: Socket
  readonly pools: ReadonlyArray<Pool>
  state: State
  since: number
  /** Requests that were not answered to the end: a caller may send several before it reads. */
  underWay: number
  /** Of their answers, those that are written and wait to be read. */
  unread: number
}

/** Also to one whose caller waits to be told that it may send the body. */
const onRequest = (server: Server, listener: (request: IncomingMessage, response: ServerResponse) => void): void => {
  server.on("request", listener)
  server.on("checkContinue", listener)
}

const watchConnections = (server: Server, limits: ConnectionLimits): void => {
  const all = new Pool()
  const byAddress = new Map<string, Pool>()
  const byName = new Map<string, Connection>()
  const bySocket = new WeakMap<Socket, Connection>()

  const become = (connection: Connection, state: State) => {
    // It has made room already.
    if (connection.pools[0]!.byState[connection.state].has(connection) === false) return
    for (const { byState } of connection.pools) {
      byState[connection.state].delete(connection)
      byState[state].add(connection)
    }
    connection.state = state
    connection.since = performance.now()
  }

  /** TLS wraps the socket that was accepted, and both have the same ends. */
  const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

  const leave = (connection: Connection, address: string, name: string) => {
    if (byName.get(name) !== connection) return
    byName.delete(name)
    for (const pool of connection.pools) {
      pool.byState[connection.state].delete(connection)
      pool.count -= 1
    }
    if (byAddress.get(address)?.count === 0) byAddress.delete(address)
  }

  /** Where a connection of the address takes a place. */
  const poolsOf = (address: string, own: Pool) =>
    [
      { pool: own, max: limits.isProxy(address) ? limits.connectionsMax : limits.perAddressMax, times: 1 },
      { pool: all, max: limits.connectionsMax, times: 10 }
    ] as const

  const mayCome = (address: string): boolean => {
    const own = byAddress.get(address)
    if (all.count < limits.connectionsMax && (own === undefined || own.count < limits.perAddressMax)) return true
    const now = limits.now()
    return poolsOf(address, own ?? new Pool()).every(
      ({ pool, max, times }) => pool.count < max || pool.mayMakeRoom(now, times * limits.roomPerSecondMax)
    )
  }

  const admit = (socket: Socket) => {
    const { remoteAddress: address } = socket
    // It is gone already.
    if (address === undefined) return socket.destroy()
    const own = byAddress.get(address) ?? new Pool()
    for (const { pool, max } of poolsOf(address, own)) {
      if (pool.count < max) continue
      const other = pool.leastNeeded()
      if (other === null) return socket.destroy()
      pool.makesRoom(limits.now())
      other.socket.destroy()
      // Its place is free at once, whenever its end is told.
      leave(other, other.socket.remoteAddress ?? address, nameOf(other.socket))
    }
    byAddress.set(address, own)
    const connection: Connection = {
      socket,
      pools: [all, own],
      state: "fresh",
      since: performance.now(),
      underWay: 0,
      unread: 0
    }
    const name = nameOf(socket)
    byName.set(name, connection)
    bySocket.set(socket, connection)
    for (const pool of connection.pools) {
      pool.byState.fresh.add(connection)
      pool.count += 1
    }
    socket.once("close", () => leave(connection, address, name))
  }

  const follow = (request: IncomingMessage, response: ServerResponse) => {
    const connection = bySocket.get(request.socket) ?? byName.get(nameOf(request.socket))
    if (connection === undefined) return
    bySocket.set(request.socket, connection)
    connection.underWay += 1
    // Who asks more instead of reading gains no time.
    if (connection.unread === 0) become(connection, "arriving")
    let isUnread = false
    // Each of these comes once; `once` would make two more functions for each.
    request.on("end", () => {
      if (connection.state === "arriving") become(connection, "working")
    })
    response.on("prefinish", () => {
      isUnread = true
      connection.unread += 1
      if (connection.unread === 1) become(connection, "unread")
    })
    response.on("close", () => {
      connection.underWay -= 1
      if (isUnread) connection.unread -= 1
      become(connection, connection.unread > 0 ? "unread" : connection.underWay > 0 ? "working" : "idle")
    })
  }

  const sweep = setInterval(
    () => {
      const before = performance.now() - limits.answerReadWithinMs
      for (const connection of all.byState.unread) {
        if (connection.since > before) break
        connection.socket.destroy()
      }
    },
    Math.min(seconds(2), limits.answerReadWithinMs)
  ).unref()

  // Node asks it before it makes a socket of a connection that it accepted.
  Object.assign(server, { blockList: { check: (address: string) => !mayCome(address) } })
  server.on("connection", admit)
  onRequest(server, follow)
  server.once("close", () => clearInterval(sweep))
}

/**
 * Makes a server close soon after it is told to. Node's own `close` lets connections that were busy at that moment stay in
 * keep-alive afterwards, and stops watching for slow requests.
 */
const stopSoon = (server: Server): void => {
  const underWay = new Set<ServerResponse>()
  onRequest(server, (_, response) => {
    underWay.add(response)
    response.on("close", () => underWay.delete(response))
  })
  const close = server.close.bind(server)
  server.close = (callback) => {
    close(callback)
    for (const response of underWay) if (endless.has(response)) response.destroy()
    const since = performance.now()
    const sweep = setInterval(() => {
      if (underWay.size === 0 || performance.now() - since > STOP_MAX) server.closeAllConnections()
      else server.closeIdleConnections()
    }, 20)
    server.once("close", () => clearInterval(sweep))
    return server
  }
}

const options = {
  headersTimeout: seconds(10),
  requestTimeout: seconds(30),
  connectionsCheckingInterval: seconds(5),
  // Longer than the usual idle time of a proxy in front, so that the proxy closes first.
  keepAliveTimeout: seconds(65),
  maxHeaderSize: 16 * 1024,
  ServerResponse: SafeResponse
} satisfies ServerOptions

/** In PEM. */
export interface Certificate {
  /** The server's own first, then what leads to its authority. */
  readonly certificate: string
  readonly key: Redacted.Redacted
}

/** TLS from the first byte. */
export interface Tls {
  readonly certificate: Certificate
  /** Is called with each later certificate: connections that begin from then on get it. */
  readonly whenRenewed: (renew: (renewed: Certificate) => void) => void
}

const secureContextOf = ({ certificate, key }: Certificate) => ({
  cert: certificate,
  key: Redacted.value(key),
  minVersion: "TLSv1.2" as const
})

const makeSecureServer = ({ certificate, whenRenewed }: Tls): Server => {
  const server = createSecureServer({
    ...options,
    ...secureContextOf(certificate),
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: options.headersTimeout
  })
  whenRenewed((renewed) => server.setSecureContext(secureContextOf(renewed)))
  return server
}

/** Calls `begin` when it is the request's turn. */
export type TakeUp = (request: IncomingMessage, begin: () => void) => void

/** Whoever listens for requests from now on hears of each when it is taken up. */
const inTurn = (server: Server, takeUp: TakeUp): void => {
  type Listener = (request: IncomingMessage, response: ServerResponse) => void
  const [on, off] = [server.on.bind(server), server.off.bind(server)]
  const later = new WeakMap<Listener, Listener>()
  const isRequest = (event: string) => event === "request" || event === "checkContinue"
  Object.assign(server, {
    on: (event: string, listener: Listener) => {
      if (!isRequest(event)) return on(event, listener)
      const whenTakenUp: Listener = (request, response) =>
        takeUp(request, () => {
          // Its caller may have gone while it waited.
          if (!response.destroyed) listener(request, response)
        })
      later.set(listener, whenTakenUp)
      return on(event, whenTakenUp)
    },
    off: (event: string, listener: Listener) => off(event, later.get(listener) ?? listener)
  })
}

export const makeServer = (
  limits: Partial<ConnectionLimits> = {},
  tls: Tls | null = null,
  takeUp: TakeUp | null = null
): Server => {
  const server = tls === null ? createServer(options) : makeSecureServer(tls)
  watchConnections(server, { ...limitsDefault, ...limits })
  stopSoon(server)
  server.on("clientError", refuse)
  if (takeUp !== null) inTurn(server, takeUp)
  return server
}
