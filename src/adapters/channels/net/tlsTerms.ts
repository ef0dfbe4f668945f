/**
 * TLS terms for destinations: Node's, without what lets the far side block the event loop: finite-field DHE with its
 * own group (0.1 s a handshake at 8,192 bits), renegotiation, unlimited session tickets.
 */
import { constants } from "node:crypto"
import type { Socket } from "node:net"
import tls from "node:tls"

export const tlsTerms = {
  ciphers: `${tls.DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION
}

/** Servers send about two; 20,000 in a row blocked the process for 0.1 s. */
const SESSIONS_MAX = 16

/** Destroys a connection that brings more. */
export const boundSessions = (socket: Socket): void => {
  let sessions = 0
  socket.on("session", () => {
    sessions += 1
    if (sessions <= SESSIONS_MAX) return
    socket.destroy(Object.assign(new Error("it sends sessions without end"), { code: "ERR_TLS_SESSIONS" }))
  })
}
