/** The listening server: Node's, with limits for its connections, a stop that ends soon, TLS where there is a certificate, and turns. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { Redacted } from "effect"
import { CountedRequest } from "./CountedRequest.ts"
import { CHECK_EVERY_MS, type ConnectionLimits, limitsDefault, watchConnections } from "./connections.ts"
import { SafeResponse } from "./securityHeaders.ts"
import { stopSoon } from "./stopSoon.ts"

const optionsOf = ({ headersWithinMs, requestWithinMs, idleMs }: ConnectionLimits): ServerOptions => ({
  headersTimeout: headersWithinMs,
  requestTimeout: requestWithinMs,
  connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, Math.ceil(headersWithinMs / 2)),
  keepAliveTimeout: idleMs,
  maxHeaderSize: 16 * 1024,
  IncomingMessage: CountedRequest,
  ServerResponse: SafeResponse
})

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

const makeSecureServer = ({ certificate, whenRenewed }: Tls, limits: ConnectionLimits): Server => {
  const server = createSecureServer({
    ...optionsOf(limits),
    ...secureContextOf(certificate),
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: limits.headersWithinMs
  })
  whenRenewed((renewed) => server.setSecureContext(secureContextOf(renewed)))
  return server
}

/** Calls `begin` when it is the request's turn. */
export type TakeUp = (request: IncomingMessage, begin: () => void) => void

/** Whoever listens for requests from now on hears of each when it is taken up, and nobody upgrades a connection. */
const inTurn = (server: Server, takeUp: TakeUp): void => {
  type Listener = (request: IncomingMessage, response: ServerResponse) => void
  const [on, off] = [server.on.bind(server), server.off.bind(server)]
  const later = new WeakMap<Listener, Listener>()
  const isRequest = (event: string) => event === "request" || event === "checkContinue"
  Object.assign(server, {
    on: (event: string, listener: Listener) => {
      if (event === "upgrade") return server
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
  given: Partial<ConnectionLimits> = {},
  tls: Tls | null = null,
  takeUp: TakeUp | null = null
): Server => {
  const limits = { ...limitsDefault, ...given }
  const server = tls === null ? createServer(optionsOf(limits)) : makeSecureServer(tls, limits)
  watchConnections(server, limits)
  stopSoon(server)
  if (takeUp !== null) inTurn(server, takeUp)
  return server
}
