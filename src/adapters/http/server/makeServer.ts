/** The listening server: Node's, with bounds for connections, TLS where there is a certificate, and quotas. */
import { createServer, type Server, type ServerOptions } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { Redacted } from "effect"
import { type ConnectionLimits, CountedRequest, limitsDefault, watchConnections } from "./connections.ts"
import type { Enter } from "./quotas.ts"
import { SafeResponse } from "./securityHeaders.ts"

const CHECK_EVERY_MS = 5_000

const optionsOf = ({ headersWithinMs, requestWithinMs, idleMs }: ConnectionLimits) =>
  ({
    headersTimeout: headersWithinMs,
    requestTimeout: requestWithinMs,
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, Math.ceil(headersWithinMs / 2)),
    keepAliveTimeout: idleMs,
    maxHeaderSize: 16 * 1024,
    IncomingMessage: CountedRequest,
    ServerResponse: SafeResponse,
    shouldUpgradeCallback: ({ isTooMany }) => isTooMany
  }) satisfies ServerOptions<typeof CountedRequest, typeof SafeResponse>

/** In PEM. */
export interface Certificate {
  /** The server's own first, then its chain. */
  readonly certificate: string
  readonly key: Redacted.Redacted
}

export interface Tls {
  readonly certificate: Certificate
  /** Passes on each later certificate, for connections that begin from then on. */
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

export const makeServer = (
  given: Partial<ConnectionLimits> = {},
  tls: Tls | null = null,
  enter: Enter = (_request, _response, begin) => begin()
): Server => {
  const limits = { ...limitsDefault, ...given }
  const server = tls === null ? createServer(optionsOf(limits)) : makeSecureServer(tls, limits)
  watchConnections(server, limits, enter)
  return server
}
