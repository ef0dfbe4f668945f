/**
 * The limits of the listening socket: slow and malformed callers are answered and disconnected before they cost
 * anything. A request that Node's parser refuses gets a problem of the same form as every other refusal.
 */
import { Server, type ServerOptions, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"

const seconds = (count: number) => count * 1000

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
  if (error.code === "ECONNRESET" || !socket.writable) {
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
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
  )
}

/** How long a stop waits for requests under way. Appends take milliseconds; a slow caller could take for ever. */
const STOP_MAX = seconds(10)

/** Answers that never end by themselves. A stop ends them: subscribers reconnect with the last id they saw. */
export const endless = new WeakSet<ServerResponse>()

/**
 * A server that closes soon after it is told to. Node's own `close` lets connections that were busy at that moment stay
 * in keep-alive afterwards, and stops watching for slow requests.
 */
class StoppableServer extends Server {
  private readonly underWay = new Set<ServerResponse>()

  constructor(options: ServerOptions) {
    super(options)
    this.on("request", (_, response) => {
      this.underWay.add(response)
      response.once("close", () => this.underWay.delete(response))
    })
  }

  override close(callback?: (error?: Error) => void): this {
    super.close(callback)
    for (const response of this.underWay) if (endless.has(response)) response.destroy()
    const since = performance.now()
    const sweep = setInterval(() => {
      if (this.underWay.size === 0 || performance.now() - since > STOP_MAX) this.closeAllConnections()
      else this.closeIdleConnections()
    }, 20)
    this.once("close", () => clearInterval(sweep))
    return this
  }
}

export const makeServer = (): Server => {
  const server = new StoppableServer({
    headersTimeout: seconds(10),
    requestTimeout: seconds(30),
    connectionsCheckingInterval: seconds(5),
    // Longer than the usual idle time of a proxy in front, so that the proxy closes first.
    keepAliveTimeout: seconds(65),
    maxHeaderSize: 16 * 1024
  })
  server.on("clientError", refuse)
  return server
}
