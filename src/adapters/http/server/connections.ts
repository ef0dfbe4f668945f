/**
 * The limits of a server's connections. Whoever is slow, silent or many is disconnected before it costs others anything.
 *
 * A connection is always in one state (`State`). When there are too many, of one address or in all, one makes room: first
 * those that have never asked anything, then those that ask nothing now, then those that do not finish sending their request, then
 * those that do not read their answer. A connection whose request is being worked on is never taken for another.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { fullConnections } from "./CountedRequest.ts"
import { type CallersTimes, lateCallers } from "./lateCallers.ts"
import { watchLoop } from "./loopTime.ts"
import { onRequest } from "./onRequest.ts"
import { refuseNotHttp } from "./refuseNotHttp.ts"

const seconds = (count: number) => count * 1000

export interface ConnectionLimits extends CallersTimes {
  /** Of all callers together. */
  readonly connectionsMax: number
  /** Of one address; a proxy of the operator's may have as many as there are. */
  readonly perAddressMax: number
  /** How long a connection is kept that asks nothing. */
  readonly idleMs: number
  /** How long an answer may wait for its reader. */
  readonly answerReadWithinMs: number
  readonly isProxy: (address: string) => boolean
  /** How many requests a caller may send on one connection before it has their answers. One more closes it. */
  readonly underWayMax: number
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
  headersWithinMs: seconds(10),
  requestWithinMs: seconds(30),
  // Longer than the usual idle time of a proxy in front, so that the proxy closes first.
  idleMs: seconds(65),
  answerReadWithinMs: seconds(30),
  isProxy: () => false,
  underWayMax: 16,
  roomPerSecondMax: 50,
  now: () => performance.now()
}

/** How often Node looks for what took too long. */
export const CHECK_EVERY_MS = seconds(5)

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
  /** Answers that have not ended: a caller may send several requests before it reads. */
  readonly underWay: Set<ServerResponse>
  /** Of their answers, those that are written and wait to be read. */
  unread: number
  /** Of the last request whose headers came. */
  last: Exchange | null
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The request whose body is on its way. */
const arrivingOf = ({ last }: Connection): Exchange | null => (last === null || last.request.complete ? null : last)

/** Whether a refusal of what arrives now can't be taken for the answer to something else, or for a part of it. */
const hearsRefusal = (connection: Connection): boolean => {
  const arriving = arrivingOf(connection)
  if (arriving === null) return connection.underWay.size === 0
  return connection.underWay.size === 1 && !arriving.response.headersSent
}

/** Of Node: a handshake or a request that took too long. */
const tooLate: ReadonlySet<string | undefined> = new Set(["ERR_TLS_HANDSHAKE_TIMEOUT", "ERR_HTTP_REQUEST_TIMEOUT"])

export const watchConnections = (server: Server, limits: ConnectionLimits): void => {
  const loop = watchLoop(limits.requestWithinMs + CHECK_EVERY_MS)
  const late = lateCallers(server, limits, loop)
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
      underWay: new Set(),
      unread: 0,
      last: null
    }
    const name = nameOf(socket)
    byName.set(name, connection)
    bySocket.set(socket, connection)
    for (const pool of connection.pools) {
      pool.byState.fresh.add(connection)
      pool.count += 1
    }
    socket.once("close", () => {
      leave(connection, address, name)
      // Node tells those behind the first only where it was the parser that read the connection's end.
      for (const response of connection.underWay) response.destroy()
    })
  }

  const connectionOf = (socket: Socket) => bySocket.get(socket) ?? byName.get(nameOf(socket))

  const follow = (request: IncomingMessage, response: ServerResponse) => {
    late.asked(request)
    const connection = connectionOf(request.socket)
    if (connection === undefined) return
    bySocket.set(request.socket, connection)
    connection.last = { request, response }
    connection.underWay.add(response)
    if (connection.underWay.size >= limits.underWayMax) fullConnections.add(request.socket)
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
      if (connection.underWay.size === limits.underWayMax) fullConnections.delete(request.socket)
      connection.underWay.delete(response)
      if (isUnread) connection.unread -= 1
      become(connection, connection.unread > 0 ? "unread" : connection.underWay.size > 0 ? "working" : "idle")
    })
  }

  const refuseOn = (error: NodeJS.ErrnoException, socket: Socket) => {
    const connection = connectionOf(socket)
    const end = () => refuseNotHttp(error, socket, connection === undefined || hearsRefusal(connection))
    if (!tooLate.has(error.code)) return end()
    late.judge(socket, connection === undefined ? null : (arrivingOf(connection)?.request ?? null), end)
  }

  const sweep = setInterval(
    () => {
      const before = performance.now() - limits.answerReadWithinMs - loop.stoodStillMs()
      for (const connection of all.byState.unread) {
        if (connection.since > before) break
        connection.socket.destroy()
      }
    },
    Math.min(seconds(2), limits.answerReadWithinMs)
  ).unref()

  // Node asks it before it makes a socket of a connection that it accepted. It is the `blockList` of `net.createServer`, which
  // `http.createServer` does not pass on, and the event `connection` comes when the socket is made.
  Object.assign(server, { blockList: { check: (address: string) => !mayCome(address) } })
  server.on("connection", admit)
  server.on("clientError", refuseOn)
  onRequest(server, follow)
  server.once("close", () => {
    clearInterval(sweep)
    late.stop()
    loop.stop()
  })
}
