/** Limits of sockets: terms of TLS with destinations, and the descriptors of this process. */
import { constants } from "node:crypto"
import { closeSync, openSync } from "node:fs"
import type { Socket } from "node:net"
import tls from "node:tls"

/**
 * Node's, without what lets the far side block the event loop: finite-field DHE with a group it names (0.1 s a handshake
 * at 8,192 bits) and renegotiation.
 */
export const tlsTerms = { ciphers: `${tls.DEFAULT_CIPHERS}:!kDHE`, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }

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

/** True when this process has no descriptors or buffers left: the failure says nothing about the other side. */
export const areUsedUp = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "EMFILE" || error.code === "ENFILE" || error.code === "ENOBUFS")

/** Error of opening any file; null when a descriptor is left. */
export const lackOfDescriptors = (): Error | null => {
  try {
    closeSync(openSync("/dev/null", "r"))
    return null
  } catch (error) {
    return areUsedUp(error) ? (error as Error) : null
  }
}
