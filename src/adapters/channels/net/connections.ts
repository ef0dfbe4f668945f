/**
 * Keep-alive HTTP/1.1 connections, pooled by destination and version. A written request is never sent again from here.
 * Built on undici's `Client`: its pool keeps given-up requests queued and can't abandon a connection in the making.
 */
import type { Socket } from "node:net"
import tls, { type SecureContext } from "node:tls"
import { Client, type Dispatcher } from "undici"
import type { FailureCode } from "../../../domain/delivery/classify.ts"
import { type Connect, type ConnectOptions, guardedConnect, NotConnected, type Steps } from "./guardedConnect.ts"
import { tlsTerms } from "./sockets.ts"

export const CONNECTIONS_PER_DESTINATION_MAX = 128
/** Beyond it the longest idle connection closes. Busy ones can exceed it: their number is bounded elsewhere. */
const CONNECTIONS_MAX = 1_024
/** Below the 5 s of Node, uvicorn and Apache, so that a request rarely meets a closing connection. */
const KEEP_ALIVE_MS = 4_000
const RESPONSE_HEADERS_MAX = 16 * 1024
/**
 * Read for one request. The parser accepts blank lines, interim answers and chunk extensions without end: 80 such
 * connections blocked the event loop for 2 s.
 */
const ANSWER_MAX = 512 * 1024
const INTERIM_MAX = 1_000

/** One for all: an Error with its stack takes longer than closing. */
const closed = new Error("closed")
const tooMuch = new Error("the answer never ends")

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface Exchange {
  readonly url: URL
  /** Names destination, version and server: exchanges of one pool share `url` and `secureContext`. */
  readonly pool: string
  readonly secureContext?: SecureContext | undefined
  readonly request: Dispatcher.DispatchOptions
  /** Called when a connection is made for it; the steps are filled in as they are done. */
  readonly connecting: (steps: Steps) => void
  /** Called before bytes leave, over a connection to this address and port. */
  readonly begins: (address: string | undefined) => void
  /** Called with the final status, not with interim answers. */
  readonly answered: (status: number, headers: AnswerHeaders) => void
  /** Answers false when the rest of the body is not wanted. */
  readonly received: (chunk: Buffer) => boolean
  /** Called once, last; null: the answer is complete. */
  readonly ended: (failure: FailureCode | null) => void
}

export interface Connections {
  readonly start: (exchange: Exchange) => void
  readonly giveUp: (exchange: Exchange) => void
  readonly close: () => void
}

interface Shared {
  readonly connectionsMax: number
  /** Of all pools, longest idle first. */
  readonly idle: Set<Connection>
  open: number
}

export const makeConnections = (
  options: Omit<ConnectOptions, "secureContext">,
  connectionsMax = CONNECTIONS_MAX
): Connections => {
  const pools = new Map<string, Pool>()
  const shared: Shared = { connectionsMax, idle: new Set(), open: 0 }
  // Shared: one for each failing connection took a quarter of the event loop.
  let defaultContext: SecureContext | undefined
  const contextFor = ({ url, secureContext }: Exchange): SecureContext | undefined => {
    if (secureContext !== undefined || url.protocol !== "https:") return secureContext
    defaultContext ??= tls.createSecureContext(tlsTerms)
    return defaultContext
  }
  const poolOf = (exchange: Exchange): Pool => {
    const { pool: name, url } = exchange
    const known = pools.get(name)
    if (known !== undefined) return known
    const connect = guardedConnect(url, { ...options, secureContext: contextFor(exchange) })
    const pool = new Pool(url.origin, connect, shared, () => pools.delete(name))
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
  readonly #onEmpty: () => void
  readonly #open = new Set<Connection>()
  /** Used from its end, so that the rest can idle and close. */
  readonly #idle: Array<Connection> = []
  readonly #waiting = new Set<Exchange>()

  constructor(origin: string, connect: Connect, shared: Shared, onEmpty: () => void) {
    this.#origin = origin
    this.#connect = connect
    this.#shared = shared
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

  /** Closes the longest idle connections of all pools until there is room for `more`. */
  #makeRoom(more: number): void {
    for (const idle of this.#shared.idle) {
      if (this.#shared.open + more <= this.#shared.connectionsMax) return
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

class Connection implements Dispatcher.DispatchHandler {
  readonly #pool: Pool
  readonly #client: Client
  #connecting: ReturnType<Connect> = null
  #exchange: Exchange | null = null
  #controller: Dispatcher.DispatchController | null = null
  #answering = false
  #interim = 0
  #socket: Socket | null = null
  #readBefore = 0
  #closed = false
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
      // The deadline of the attempt covers these.
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
    // undici first waits for a connection in the making, for minutes.
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

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
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

  #end(failure: FailureCode | null): void {
    const exchange = this.#exchange!
    this.#exchange = null
    if (failure !== null) this.close()
    // undici's parser can't be re-entered, and the listener may send at once.
    queueMicrotask(() => {
      if (!this.#closed) this.#pool.free(this)
      exchange.ended(failure)
    })
  }
}

/** True of bytes that never became a status line. */
const isParserError = (error: Error): boolean => "code" in error && String(error.code).startsWith("HPE_")
