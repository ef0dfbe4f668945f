/**
 * What TLS to a destination may use: Node's own choice without what lets the far side keep the one thread busy, whoever's messages wait
 * behind it.
 *
 * - The key exchange in which the far side names the group: with one of 8,192 bits each handshake takes a tenth of a second.
 * - Handshakes that the far side begins anew on an open connection, as often as it likes.
 * - Sessions to resume, of which it may send any number.
 */
import { constants } from "node:crypto"
import type { Socket } from "node:net"
import tls from "node:tls"

export const tlsTerms = {
  ciphers: `${tls.DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION
}

/** Servers send two or so. Twenty thousand in a row kept the process for a tenth of a second, and nothing else ends them. */
const SESSIONS_MAX = 16

/** Gives a connection up over which more come. */
export const boundSessions = (socket: Socket): void => {
  let sessions = 0
  socket.on("session", () => {
    sessions += 1
    if (sessions <= SESSIONS_MAX) return
    socket.destroy(Object.assign(new Error("it sends sessions without end"), { code: "ERR_TLS_SESSIONS" }))
  })
}
