/**
 * Keep-alive HTTP/1.1 connections, pooled by origin, each to an address that was vetted for it.
 *
 * - A connection carries one request at a time. A request is written at most once: what was written and
 *   got no answer is reported, never sent again from here.
 * - Giving up works in every phase: a request that waits is forgotten, a connection being made is
 *   destroyed, a written request takes its connection with it.
 *
 * It builds on undici's `Client` (one connection, its parser, its keep-alive hints) and not on its pool:
 * that one keeps requests that were given up in its queue and can't abandon a connection being made.
 */
import type { Socket } from "node:net"
import { Client, type Dispatcher } from "undici"
import type { FailureCode } from "../../../domain/delivery/classify.ts"
import type { AddressGuard } from "./addressGuard.ts"
import { type Connect, guardedConnect, NotConnected, type Resolve } from "./guardedConnect.ts"

export const CONNECTIONS_PER_ORIGIN_MAX = 128
/** Below the 5 s after which Node, uvicorn and Apache hang up, so that a request rarely meets a closing connection. */
const KEEP_ALIVE_MS = 4_000
const RESPONSE_HEADERS_MAX = 16 * 1024

/** A request under way and its result so far, as seen by the connection that carries it. */
export interface Exchange {
  readonly url: URL
  readonly request: Dispatcher.DispatchOptions
  /** From here on bytes of the request may have left. */
  readonly begins: () => void
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

export const makeConnections = (guard: AddressGuard, resolve?: Resolve): Connections => {
  const origins = new Map<string, Origin>()
  const originOf = (url: URL): Origin => {
    const known = origins.get(url.origin)
    if (known !== undefined) return known
    const origin = new Origin(url, guard, resolve, () => origins.delete(url.origin))
    origins.set(url.origin, origin)
    return origin
  }
  return {
    start: (exchange) => originOf(exchange.url).start(exchange),
    giveUp: (exchange) => origins.get(exchange.url.origin)?.giveUp(exchange),
    close: () => {
      for (const origin of [...origins.values()]) origin.close()
    }
  }
}

class Origin {
  readonly #url: URL
  readonly #connect: Connect
  readonly #onEmpty: () => void
  readonly #open = new Set<Connection>()
  /** The most recently used connection is taken first, so that the rest can go idle and close. */
  readonly #idle: Array<Connection> = []
  readonly #waiting = new Set<Exchange>()

  constructor(url: URL, guard: AddressGuard, resolve: Resolve | undefined, onEmpty: () => void) {
    this.#url = url
    this.#connect = guardedConnect(url, guard, resolve)
    this.#onEmpty = onEmpty
  }

  start(exchange: Exchange): void {
    const connection = this.#idle.pop() ?? (this.#open.size < CONNECTIONS_PER_ORIGIN_MAX ? this.#connection() : null)
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
    if (next === null) this.#idle.push(connection)
    else connection.carry(next)
  }

  /** `connection` is closed, and its place in the pool is free. */
  gone(connection: Connection): void {
    this.#open.delete(connection)
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
    const connection = new Connection(this.#url.origin, this.#connect, this)
    this.#open.add(connection)
    return connection
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
  readonly #origin: Origin
  readonly #client: Client
  #socket: Socket | null = null
  #exchange: Exchange | null = null
  #controller: Dispatcher.DispatchController | null = null
  #answering = false
  #closed = false

  constructor(origin: string, connect: Connect, owner: Origin) {
    this.#origin = owner
    this.#client = new Client(origin, {
      connect: (_options, callback) => {
        this.#socket = connect((error, socket) => {
          if (error === null) callback(null, socket)
          else callback(error, null)
        })
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
    this.#client.dispatch(exchange.request, this)
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
    this.#client.destroy(null, () => {})
    // undici waits for a connection that is being made before it destroys it; that can take minutes.
    this.#socket?.destroy()
    this.#origin.gone(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#exchange!.begins()
  }

  onResponseStarted(): void {
    this.#answering = true
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>
  ): void {
    if (status >= 200) this.#exchange!.answered(status, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#exchange!.received(chunk)) controller.abort(new Error("enough"))
  }

  onResponseEnd(): void {
    this.#end(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const broken = this.#answering || isParserError(error)
    this.#end(error instanceof NotConnected ? error.code : broken ? "response_broken" : "connection_failed")
  }

  /** A connection that failed once is not used again. */
  #end(failure: FailureCode | null): void {
    const exchange = this.#exchange!
    this.#exchange = null
    if (failure !== null) this.close()
    // Not from inside undici's parser, which can't be entered twice: the listener may send at once.
    queueMicrotask(() => {
      if (!this.#closed) this.#origin.free(this)
      exchange.ended(failure)
    })
  }
}

/** Bytes that never became a status line: the parser stopped before it saw an answer begin. */
const isParserError = (error: Error): boolean => "code" in error && String(error.code).startsWith("HPE_")
