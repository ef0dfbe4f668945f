/**
 * Keep-alive HTTP/1.1 connections, pooled by destination, each to an address that was vetted for it.
 *
 * - A destination waits for its own connections only: whoever else calls the same server, of the same org or another,
 *   neither delays it nor lends it a connection. A changed destination has a new pool, so no request goes over a
 *   connection that was made under other settings.
 * - Pools without a connection are gone. Idle connections close after some seconds; beyond `CONNECTIONS_MAX` the one that
 *   was idle longest closes for the next, so that many destinations don't use up the descriptors.
 * - A connection carries one request at a time. A request is written at most once: what was written and
 *   got no answer is reported, never sent again from here.
 * - Giving up works in every phase: a request that waits is forgotten, a connection being made is
 *   destroyed, a written request takes its connection with it.
 *
 * It builds on undici's `Client` (one connection, its parser, its keep-alive hints) and not on its pool:
 * that one keeps requests that were given up in its queue and can't abandon a connection being made.
 */
import type { Socket } from "node:net"
import tls, { type SecureContext } from "node:tls"
import { Client, type Dispatcher } from "undici"
import type { FailureCode } from "../../../domain/delivery/classify.ts"
import { type Connect, type ConnectOptions, guardedConnect, NotConnected, type Steps } from "./guardedConnect.ts"
import { tlsTerms } from "./tlsTerms.ts"

export const CONNECTIONS_PER_DESTINATION_MAX = 128
/** Idle and busy together. Busy ones may be more: how many requests are under way is bounded elsewhere. */
const CONNECTIONS_MAX = 1_024
/** Below the 5 s after which Node, uvicorn and Apache hang up, so that a request rarely meets a closing connection. */
const KEEP_ALIVE_MS = 4_000
const RESPONSE_HEADERS_MAX = 16 * 1024
/**
 * What may come over a connection for one request, in bytes and in interim answers. The parser reads on for as long as bytes come: blank
 * lines, interim answers and what stands beside the size of a chunk may never end. So 80 connections kept the event loop for two seconds
 * at a time.
 */
const ANSWER_MAX = 512 * 1024
const INTERIM_MAX = 1_000

/** Of every connection that is closed: undici would make an error for each, with a stack that takes longer than the closing. */
const closed = new Error("closed")
const tooMuch = new Error("the answer never ends")

/** A request under way and its result so far, as seen by the connection that carries it. */
export interface Exchange {
  readonly url: URL
  /** Names the destination, its version and the server: what `url` and `secureContext` say goes for all of its exchanges. */
  readonly pool: string
  /** Whom it trusts and who we are to it; absent: as for everybody. */
  readonly secureContext?: SecureContext | undefined
  readonly request: Dispatcher.DispatchOptions
  /** A connection is made for it; the steps are noted as they are done. */
  readonly connecting: (steps: Steps) => void
  /** From here on bytes of the request may have left, over a connection to this address and port. */
  readonly begins: (address: string | undefined) => void
  /** The final status line and headers; interim answers are left out. */
  readonly answered: (status: number, headers: Readonly<Record<string, string | string[] | undefined>>) => void
  /** False ends the exchange: the rest of the body is not wanted. */
  readonly received: (chunk: Buffer) => boolean
  /** Called once, last. Null: the answer is complete. */
  readonly ended: (failure: FailureCode | null) => void
}

export interface Connections {
  /** Starts the exchange: now, or when a connection is free. */
  readonly start: (exchange: Exchange) => void
  /** Ends it in any phase; does nothing when it is over. */
  readonly giveUp: (exchange: Exchange) => void
  readonly close: () => void
}

/** What all pools have in common. */
interface Shared {
  /** Of all pools; the one that has been idle longest is the first. */
  readonly idle: Set<Connection>
  open: number
}

/** `options`: by which way, and to which addresses. */
export const makeConnections = (
  options: Omit<ConnectOptions, "secureContext">,
  connectionsMax = CONNECTIONS_MAX
): Connections => {
  const pools = new Map<string, Pool>()
  const shared: Shared = { idle: new Set(), open: 0 }
  // Made once: with one for each, the connections that an org has made and that lead nowhere took a quarter of the event loop.
  let everybodys: SecureContext | undefined
  const contextFor = ({ url, secureContext }: Exchange): SecureContext | undefined => {
    if (secureContext !== undefined || url.protocol !== "https:") return secureContext
    everybodys ??= tls.createSecureContext(tlsTerms)
    return everybodys
  }
  const poolOf = (exchange: Exchange): Pool => {
    const { pool: name, url } = exchange
    const known = pools.get(name)
    if (known !== undefined) return known
    const connect = guardedConnect(url, { ...options, secureContext: contextFor(exchange) })
    const pool = new Pool(url.origin, connect, shared, connectionsMax, () => pools.delete(name))
    pools.set(name, pool)
    return pool
  }
  return {
    start: (exchange) => poolOf(exchange).start(exchange),
    giveUp: (exchange) => pools.get(exchange.pool)?.giveUp(exchange),
    close: () => {
      for (const pool of [...pools.values()]) pool.close()
    }
  }
}

class Pool {
  readonly #origin: string
  readonly #connect: Connect
  readonly #shared: Shared
  readonly #connectionsMax: number
  readonly #onEmpty: () => void
  readonly #open = new Set<Connection>()
  /** The most recently used connection is taken first, so that the rest can go idle and close. */
  readonly #idle: Array<Connection> = []
  readonly #waiting = new Set<Exchange>()

  constructor(origin: string, connect: Connect, shared: Shared, connectionsMax: number, onEmpty: () => void) {
    this.#origin = origin
    this.#connect = connect
    this.#shared = shared
    this.#connectionsMax = connectionsMax
    this.#onEmpty = onEmpty
  }

  start(exchange: Exchange): void {
    const idle = this.#idle.pop()
    if (idle !== undefined) this.#shared.idle.delete(idle)
    const connection = idle ?? (this.#open.size < CONNECTIONS_PER_DESTINATION_MAX ? this.#connection() : null)
    if (connection === null) this.#waiting.add(exchange)
    else connection.carry(exchange)
  }

  giveUp(exchange: Exchange): void {
    if (this.#waiting.delete(exchange)) return
    for (const connection of this.#open) if (connection.giveUp(exchange)) return
  }

  /** The exchange of `connection` is over and it can carry the next. */
  free(connection: Connection): void {
    const next = this.#nextWaiting()
    if (next !== null) {
      connection.carry(next)
      return
    }
    this.#idle.push(connection)
    this.#shared.idle.add(connection)
    this.#makeRoom(0)
  }

  /** `connection` is closed, and its place in the pool is free. */
  gone(connection: Connection): void {
    this.#open.delete(connection)
    this.#shared.open -= 1
    this.#shared.idle.delete(connection)
    const idle = this.#idle.indexOf(connection)
    if (idle !== -1) this.#idle.splice(idle, 1)
    const next = this.#nextWaiting()
    if (next !== null) this.#connection().carry(next)
    else if (this.#open.size === 0) this.#onEmpty()
  }

  close(): void {
    this.#waiting.clear()
    for (const connection of [...this.#open]) connection.close()
  }

  #connection(): Connection {
    this.#makeRoom(1)
    const connection = new Connection(this.#origin, this.#connect, this)
    this.#open.add(connection)
    this.#shared.open += 1
    return connection
  }

  /** Closes what has been idle longest, whosever it is, until there is room for so many more. */
  #makeRoom(more: number): void {
    for (const idle of this.#shared.idle) {
      if (this.#shared.open + more <= this.#connectionsMax) return
      idle.close()
    }
  }

  #nextWaiting(): Exchange | null {
    for (const exchange of this.#waiting) {
      this.#waiting.delete(exchange)
      return exchange
    }
    return null
  }
}

/** One connection. It is its own handler: undici reports events to it, and it passes them to its exchange. */
class Connection implements Dispatcher.DispatchHandler {
  readonly #pool: Pool
  readonly #client: Client
  #connecting: ReturnType<Connect> = null
  #exchange: Exchange | null = null
  #controller: Dispatcher.DispatchController | null = null
  #answering = false
  #interim = 0
  #socket: Socket | null = null
  /** Over the connection before this exchange. */
  #readBefore = 0
  #closed = false
  /** Of the connection it has. */
  #steps: Steps = {}

  constructor(origin: string, connect: Connect, pool: Pool) {
    this.#pool = pool
    this.#client = new Client(origin, {
      connect: (_options, callback) => {
        this.#steps = {}
        this.#exchange?.connecting(this.#steps)
        this.#connecting = connect((error, socket) => {
          if (error !== null) return callback(error, null)
          this.#bound(socket)
          callback(null, socket)
        }, this.#steps)
      },
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: RESPONSE_HEADERS_MAX,
      // The one deadline of an attempt covers everything; a timer per request would only cost.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    this.#client.on("disconnect", () => {
      if (this.#exchange === null) this.close()
    })
  }

  carry(exchange: Exchange): void {
    this.#exchange = exchange
    this.#controller = null
    this.#answering = false
    this.#interim = 0
    this.#readBefore = this.#socket?.bytesRead ?? 0
    this.#client.dispatch(exchange.request, this)
  }

  /** The client reads until nothing is left to read. */
  #bound(socket: Socket): void {
    this.#socket = socket
    this.#readBefore = socket.bytesRead
    const read = socket.read.bind(socket)
    socket.read = (size) => {
      if (socket.bytesRead - this.#readBefore <= ANSWER_MAX) return read(size)
      socket.destroy(tooMuch)
      return null
    }
  }

  /** True when this connection carried the exchange. */
  giveUp(exchange: Exchange): boolean {
    if (this.#exchange !== exchange) return false
    if (this.#controller === null) this.close()
    else this.#controller.abort(new Error("given up"))
    return true
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#client.destroy(closed, () => {})
    // undici waits for a connection that is being made before it destroys it; that can take minutes.
    this.#connecting?.destroy()
    this.#pool.gone(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#exchange!.begins(this.#steps.address)
  }

  onResponseStarted(): void {
    this.#answering = true
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>
  ): void {
    if (status >= 200) this.#exchange!.answered(status, headers)
    else if (++this.#interim > INTERIM_MAX) controller.abort(tooMuch)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#exchange!.received(chunk)) controller.abort(new Error("enough"))
  }

  onResponseEnd(): void {
    this.#end(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const broken = this.#answering || error === tooMuch || isParserError(error)
    this.#end(error instanceof NotConnected ? error.code : broken ? "response_broken" : "connection_failed")
  }

  /** A connection that failed once is not used again. */
  #end(failure: FailureCode | null): void {
    const exchange = this.#exchange!
    this.#exchange = null
    if (failure !== null) this.close()
    // Not from inside undici's parser, which can't be entered twice: the listener may send at once.
    queueMicrotask(() => {
      if (!this.#closed) this.#pool.free(this)
      exchange.ended(failure)
    })
  }
}

/** Bytes that never became a status line: the parser stopped before it saw an answer begin. */
const isParserError = (error: Error): boolean => "code" in error && String(error.code).startsWith("HPE_")
